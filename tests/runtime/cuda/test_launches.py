"""Launch structures byte by byte, as the driver's header lays them out."""

import ctypes

import numpy as np
import pytest

from bedstone.errors import DeviceError
from bedstone.runtime.cuda.launches import LaunchList, Target, attributes_of
from bedstone.runtime.image import Capture, Linker, build_image
from bedstone.runtime.lower import Kernel, lower
from bedstone.spec.manifest import (
    F32,
    I32,
    U8,
    Add,
    BytesParam,
    Call,
    Clamp,
    Impl,
    KernelLaunch,
    Manifest,
    Mul,
    Op,
    Pack,
    PackField,
    ParamArg,
    Program,
    ScalarParam,
    Var,
    VarArg,
    When,
)

STREAM = 0x1234_5678_9ABC


class Config(ctypes.Structure):
    """`CUlaunchConfig` of cuda.h."""

    _fields_ = (
        ("gridDimX", ctypes.c_uint), ("gridDimY", ctypes.c_uint), ("gridDimZ", ctypes.c_uint),
        ("blockDimX", ctypes.c_uint), ("blockDimY", ctypes.c_uint), ("blockDimZ", ctypes.c_uint),
        ("sharedMemBytes", ctypes.c_uint), ("hStream", ctypes.c_void_p),
        ("attrs", ctypes.c_void_p), ("numAttrs", ctypes.c_uint),
    )  # fmt: skip


class Attribute(ctypes.Structure):
    """`CUlaunchAttribute` of cuda.h, its value as words."""

    _fields_ = (
        ("id", ctypes.c_int),
        ("pad", ctypes.c_char * 4),
        ("value", ctypes.c_uint * 16),
    )


PACK = Pack(12, (PackField(0, VarArg("n")), PackField(4, F32(1.5)), PackField(8, U8(7))))
LAUNCHES = (
    KernelLaunch(
        "m", "wide", (32, 4, 2), ("n", Mul("n", 2), 3), shared_mem=Add("n", 100),
        cluster=(1, 2, 1), pdl=True,
    ),
    KernelLaunch("m", "some", (8, 1, 1), (1, 1, 1), when=When("n", 3, None)),
    KernelLaunch("m", "rest", (8, 1, 1), (Clamp("n", 2, 9), 1, 1)),
    KernelLaunch(
        "m", "packed", (1, 1, 1), (1, 1, 1), params=(BytesParam(12), ScalarParam("i32")),
        args=(PACK, ParamArg(0)),
    ),
)  # fmt: skip


class Recorder:
    """What is launched, read through the addresses as the driver would."""

    def __init__(self):
        self.kernels, self.targets, self.seen, self.status = [], [], [], 0

    def handle(self, kernel):
        self.kernels.append(kernel)
        self.targets.append(Target(kernel, len(self.kernels), None, attributes_of(kernel)))
        return len(self.kernels) - 1

    def launch(self, config, function, params, extra):
        assert extra is None
        kernel = self.kernels[function - 1]
        found = Config.from_address(config)
        attributes = [Attribute.from_address(found.attrs + 72 * i) for i in range(found.numAttrs)]
        pointers = np.frombuffer((ctypes.c_uint64 * len(kernel.params)).from_address(params), "<u8")
        sizes = [p.size if isinstance(p, BytesParam) else 4 for p in kernel.params]
        self.seen.append(
            (
                kernel.entry,
                (found.gridDimX, found.gridDimY, found.gridDimZ),
                (found.blockDimX, found.blockDimY, found.blockDimZ),
                found.sharedMemBytes,
                found.hStream,
                [(a.id, list(a.value[:3])) for a in attributes],
                [ctypes.string_at(int(at), size) for at, size in zip(pointers, sizes, strict=True)],
            )
        )
        return self.status


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def capture(recorder):
    op = Op((ScalarParam("i32"),), Impl(LAUNCHES))
    program = Program((Call("f", (I32(-9),)),))
    manifest = Manifest("m", {}, {}, {"f": op}, {"p": program}, vars={"n": Var(9)})
    lowered = lower(manifest, "p", {})
    return Capture(build_image(lowered, Linker(lambda _: 0, recorder.handle, lambda *_: b"")))


def run(recorder, capture, launches, n):
    recorder.seen.clear()
    capture.bind({"n": n})
    launches.enqueue(capture.edition)
    return recorder.seen


def test_every_field_of_every_launch(recorder, capture):
    launches = LaunchList(capture, recorder.targets, STREAM, recorder.launch)
    minus = (-9).to_bytes(4, "little", signed=True)
    pack = np.array([4], "<i4").tobytes() + np.array([1.5], "<f4").tobytes() + b"\7\0\0\0"
    assert run(recorder, capture, launches, 4) == [
        ("wide", (4, 8, 3), (32, 4, 2), 104, STREAM, [(4, [1, 2, 1]), (6, [1, 0, 0])], [minus]),
        ("some", (1, 1, 1), (8, 1, 1), 0, STREAM, [], [minus]),
        ("rest", (2, 1, 1), (8, 1, 1), 0, STREAM, [], [minus]),
        ("packed", (1, 1, 1), (1, 1, 1), 0, STREAM, [], [pack, minus]),
    ]


@pytest.mark.parametrize(
    ("n", "entries"),
    [
        (1, ["wide", "packed"]),
        (2, ["wide", "packed"]),
        (3, ["wide", "some", "rest", "packed"]),
    ],
)
def test_launches_outside_their_range_or_of_empty_grids_are_left_out(recorder, capture, n, entries):
    launches = LaunchList(capture, recorder.targets, STREAM, recorder.launch)
    assert [seen[0] for seen in run(recorder, capture, launches, n)] == entries


def test_another_assignment_refreshes_what_the_vars_say(recorder, capture):
    launches = LaunchList(capture, recorder.targets, STREAM, recorder.launch)
    for n in (9, 1, 5):
        wide, *_, packed = run(recorder, capture, launches, n)
        assert (wide[1], wide[3]) == ((n, 2 * n, 3), 100 + n)
        assert packed[6][0][:4] == n.to_bytes(4, "little")


def test_a_stretch_has_its_own_launches_and_what_vars_say_of_them(recorder, capture):
    capture.bind({"n": 4})
    whole = run(
        recorder, capture, LaunchList(capture, recorder.targets, STREAM, recorder.launch), 4
    )
    expected = list(whole)
    for first, count in ((0, 1), (1, 2), (3, 1), (1, 3)):
        stretch = capture.part(first, count)
        launches = LaunchList(stretch, recorder.targets, STREAM, recorder.launch)
        recorder.seen.clear()
        launches.enqueue(stretch.edition)
        assert recorder.seen == expected[first : first + count]
    capture.bind({"n": 9})
    recorder.seen.clear()
    launches.enqueue(capture.edition)
    assert recorder.seen[1][1] == (7, 1, 1)


def test_a_refused_launch_is_named_with_its_geometry(recorder, capture):
    launches = LaunchList(capture, recorder.targets, STREAM, recorder.launch)
    recorder.status = 701
    with pytest.raises(
        DeviceError,
        match=r"launch #0 \(`wide`\) was refused with CUDA error 701: grid \[4, 8, 3\], block "
        r"\[32, 4, 2\], 104 shared bytes",
    ):
        run(recorder, capture, launches, 4)


def test_a_built_in_is_given_the_words_of_its_arguments(recorder, capture):
    given = []

    def builtin(held):
        given.append(held.tolist())
        return 0

    recorder.targets[0] = Target(Kernel(None, "extern:x", LAUNCHES[3].params[1:]), builtin=builtin)
    launches = LaunchList(capture, recorder.targets, STREAM, recorder.launch)
    run(recorder, capture, launches, 4)
    assert given == [[2**64 - 9]]
    assert [seen[0] for seen in recorder.seen] == ["some", "rest", "packed"]
