"""The order of a load: weights in place or copied, derived and once programs, what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bedstone.checkpoint.tensors import TensorInfo
from bedstone.errors import CallerError, ManifestError, WeightError
from bedstone.runtime.cpu.device import CpuDevice
from bedstone.runtime.device import Memory
from bedstone.runtime.load import Parts, load
from bedstone.runtime.lower import Region
from bedstone.spec.manifest import (
    F32,
    BufArg,
    Buffer,
    BufferParam,
    Call,
    HostTensor,
    Impl,
    KernelLaunch,
    Manifest,
    Module,
    Op,
    Program,
    RankedRanges,
    ScalarParam,
    Segment,
    State,
    StateArg,
    StateParam,
    Topology,
    Var,
)
from runtime_toy import compile_module

N = 6


class Checkpoint:
    """Tensors in memory, `skew` bytes off their alignment, and which of them were read."""

    def __init__(self, skew=0, **tensors):
        self.tensors, self.data, self.reads = {}, {}, []
        for name, values in tensors.items():
            array = np.array(values, np.float32)
            held = np.zeros(array.nbytes + 64, np.uint8)
            start = -held.ctypes.data % 64 + skew
            self.data[name] = held[start : start + array.nbytes]
            self.data[name][:] = array.reshape(-1).view(np.uint8)
            self.tensors[name] = TensorInfo(name, "f32", array.shape, Path("w"), 0, array.nbytes)

    def file(self, _info):
        return None

    def raw(self, info):
        self.reads.append(info.name)
        return self.data[info.name]


def axpy(times, x, y):
    return Call("axpy", (F32(times), BufArg(x), BufArg(y)))


def manifest_of(sha256, buffers, programs, **more):
    params = (ScalarParam("f32"), BufferParam("in", "f32"), BufferParam("inout", "f32"))
    launch = KernelLaunch("m", "axpy", (1, 1, 1), ("n", 1, 1))
    return Manifest(
        "axpy", buffers, {"m": Module("axpy", sha256)}, {"axpy": Op(params, Impl((launch,)))},
        programs, vars={"n": Var(N)}, **more,
    )  # fmt: skip


def buffer(kind, *bind):
    return Buffer("f32", (N,), kind, bind=tuple(Segment(name) for name in bind))


@pytest.fixture(scope="module")
def module(tmp_path_factory, cache):
    folder = tmp_path_factory.mktemp("axpy")
    return compile_module(Path(__file__).with_name("axpy.c"), folder, cache), folder


@pytest.fixture
def axpy_load(module, cache):
    sha256, folder = module
    opened = []

    def loaded(buffers, programs, checkpoint=None, *, more=None, **options):
        manifest = manifest_of(sha256, buffers, programs, **(more or {}))
        options = {"cache": cache, "threads": 1, **options}
        opened.append(load(Parts(manifest, folder), checkpoint=checkpoint, **options))
        return opened[-1]

    yield loaded
    for session in opened:
        session.close()


def f32(session, name):
    return session.region(name).view(np.float32).tolist()


RUN = {"run": Program((axpy(1.0, "w", "y"),))}


def test_a_whole_tensor_is_used_where_it_lies(axpy_load):
    checkpoint = Checkpoint(w=range(N))
    session = axpy_load({"w": buffer("weight", "w"), "y": buffer("inout")}, RUN, checkpoint)
    checkpoint.data["w"].view(np.float32)[0] = 50
    session.run("run", n=N)
    assert session.read("y").tolist() == [50, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("skew", [1, 2, 3])
def test_a_tensor_off_its_alignment_is_copied(axpy_load, skew):
    checkpoint = Checkpoint(skew, w=range(N))
    session = axpy_load({"w": buffer("weight", "w"), "y": buffer("inout")}, RUN, checkpoint)
    checkpoint.data["w"][:] = 0
    session.run("run", n=N)
    assert session.read("y").tolist() == [0, 1, 2, 3, 4, 5]


def test_a_weight_of_two_tensors_is_copied(axpy_load):
    checkpoint = Checkpoint(a=[1, 2, 3], b=[4, 5, 6])
    session = axpy_load({"w": buffer("weight", "a", "b"), "y": buffer("inout")}, RUN, checkpoint)
    session.run("run", n=N)
    assert session.read("y").tolist() == [1, 2, 3, 4, 5, 6]


def test_a_weight_that_lies_somewhere_already_is_not_loaded_again(axpy_load):
    checkpoint = Checkpoint(a=[1, 2, 3], b=[4, 5, 6])
    buffers = {"w": buffer("weight", "a", "b"), "y": buffer("inout")}
    first = axpy_load(buffers, RUN, checkpoint)
    held = first.loaded.memory[Region("buffer", "w")]
    second = axpy_load(buffers, RUN, checkpoint, weights={"w": held})
    assert second.loaded.memory[Region("buffer", "w")].address == held.address
    second.run("run", n=N)
    assert second.read("y").tolist() == [1, 2, 3, 4, 5, 6]
    assert first.read("y").tolist() == [0] * N
    with pytest.raises(WeightError, match="`w` has 24 bytes: expected as many where it lies"):
        axpy_load(buffers, RUN, checkpoint, weights={"w": Memory(held.address, 8, held)})


def test_derived_programs_run_in_name_order_with_every_var_at_one(axpy_load):
    buffers = {
        "raw": buffer("source", "s"),
        "late": buffer("source", "t"),
        "first": buffer("carry"),
        "second": buffer("carry"),
        "y": buffer("inout"),
    }
    programs = {
        "b": Program((axpy(10.0, "first", "second"), axpy(1.0, "late", "second")), derive=True),
        "a": Program((axpy(2.0, "raw", "first"),), derive=True),
        "c": Program((axpy(1.0, "second", "y"),)),
    }
    checkpoint = Checkpoint(s=[3] * N, t=[4] * N)
    session = axpy_load(buffers, programs, checkpoint)
    assert f32(session, "first") == [6, 0, 0, 0, 0, 0]
    assert f32(session, "second") == [64, 0, 0, 0, 0, 0]
    with pytest.raises(CallerError, match="no program `a`; there are `c`"):
        session.run("a", n=1)
    with pytest.raises(CallerError, match="no state or buffer `raw`"):
        session.region("raw")


def test_a_source_is_read_when_first_needed_and_kept_while_it_is(axpy_load):
    buffers = {
        "early": buffer("source", "early"),
        "late": buffer("source", "late"),
        "sum": buffer("carry"),
        "y": buffer("inout"),
    }
    programs = {
        "a": Program((axpy(1.0, "early", "sum"),), derive=True),
        "b": Program((axpy(1.0, "late", "sum"),), derive=True),
        "c": Program((axpy(1.0, "early", "sum"),), derive=True),
        "run": Program((axpy(1.0, "sum", "y"),)),
    }
    seen = []
    checkpoint = Checkpoint(early=[1] * N, late=[10] * N)

    def progress(stage, done, total):
        if stage == "derive":
            seen.append((done, total, list(checkpoint.reads)))

    session = axpy_load(buffers, programs, checkpoint, progress=progress)
    assert f32(session, "sum")[0] == 12
    assert seen == [(0, 3, []), (1, 3, ["early"]), (2, 3, ["early", "late"])]


def test_what_is_left_for_states_is_asked_once_everything_else_is_there(axpy_load, monkeypatch):
    buffers = {"raw": buffer("source", "s"), "d": buffer("carry"), "y": buffer("inout")}
    programs = {
        "derive": Program((axpy(1.0, "raw", "d"),), derive=True),
        "run": Program((axpy(1.0, "d", "y"),)),
    }
    seen = []
    free_bytes = CpuDevice.free_bytes

    def asked(device):
        seen.append("free")
        return free_bytes(device)

    monkeypatch.setattr(CpuDevice, "free_bytes", asked)
    axpy_load(
        buffers, programs, Checkpoint(s=[1] * N), progress=lambda stage, *_: seen.append(stage)
    )
    assert seen.index("derive") < len(seen) - 1 - seen[::-1].index("free")


def test_once_programs_run_after_derived_ones(axpy_load):
    buffers = {
        "raw": buffer("source", "s"),
        "d": buffer("carry"),
        "o": buffer("carry"),
        "y": buffer("inout"),
    }
    programs = {
        "a.once": Program((axpy(1.0, "d", "o"),), once=True),
        "b.once": Program((axpy(3.0, "o", "o"),), once=True),
        "z.derive": Program((axpy(1.0, "raw", "d"),), derive=True),
        "run": Program((axpy(1.0, "o", "y"),)),
    }
    session = axpy_load(buffers, programs, Checkpoint(s=[5] * N))
    assert f32(session, "o") == [20, 0, 0, 0, 0, 0]


def test_a_weight_of_another_type_stops_the_load(axpy_load):
    buffers = {
        "w": replace(buffer("weight", "w"), dtype="f32", shape=(N + 1,)),
        "y": buffer("inout"),
    }
    with pytest.raises(WeightError, match="total 24 bytes, the buffer is 28"):
        axpy_load(buffers, RUN, Checkpoint(w=range(N)))


def test_weights_without_a_checkpoint_are_refused(axpy_load):
    with pytest.raises(CallerError, match="manifest `axpy` binds weights, and no checkpoint"):
        axpy_load({"w": buffer("weight", "w"), "y": buffer("inout")}, RUN)


RANKED = Buffer("f32", (N,), "weight", bind=(Segment("w", RankedRanges("tp", ((0, 2), (2, 4)))),))


def test_a_rank_loads_its_own_rows(axpy_load):
    checkpoint = Checkpoint(w=np.arange(12).reshape(4, 3))
    session = axpy_load(
        {"w": RANKED, "y": buffer("inout")}, RUN, checkpoint,
        more={"topology": Topology({"tp": 2})}, ranks={"tp": (1, 2)},
    )  # fmt: skip
    session.run("run", n=N)
    assert session.read("y").tolist() == [6, 7, 8, 9, 10, 11]


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        (None, r"declares a topology \(tp=2\); load needs this rank's place in it"),
        ({}, "topology group `tp`: no rank given"),
        ({"tp": (0, 3)}, "`tp`: manifest declares 2 members, rank given for 3"),
        ({"tp": (2, 2)}, r"`tp`: rank 2 outside 0\.\.2"),
    ],
)
def test_a_topology_needs_this_rank_s_place(axpy_load, ranks, message):
    options = {} if ranks is None else {"ranks": ranks}
    with pytest.raises(CallerError, match=message):
        axpy_load(
            {"w": RANKED, "y": buffer("inout")},
            RUN,
            more={"topology": Topology({"tp": 2})},
            **options,
        )


def test_a_manifest_that_breaks_a_rule_is_not_loaded(axpy_load):
    with pytest.raises(ManifestError, match="buffer `lost` is never used"):
        axpy_load({"lost": buffer("input"), "x": buffer("input"), "y": buffer("inout")}, {
            "run": Program((axpy(1.0, "x", "y"),))
        })  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", "null"])
def test_a_state_of_an_outer_engine_is_refused(toy, cache, device):
    host = State(host=HostTensor("u8", (4,), (1,)))
    state = replace(toy.manifest, states={"kv": host})
    with pytest.raises(CallerError, match="state `kv` belongs to an outer engine"):
        load(replace(toy, manifest=state), cache=cache, device=device)


def test_a_state_offset_past_what_is_reserved_is_refused(module, cache):
    sha256, folder = module
    manifest = manifest_of(sha256, {"y": buffer("inout")}, {})
    op = replace(
        manifest.ops["axpy"],
        params=(ScalarParam("f32"), StateParam("in"), BufferParam("inout", "f32")),
    )
    call = Call("axpy", (F32(1.0), StateArg("s", 64), BufArg("y")))
    manifest = replace(
        manifest,
        ops={"axpy": op},
        programs={"run": Program((call,))},
        states={"s": State(bytes=64)},
    )
    with pytest.raises(ManifestError, match="state `s` is used from byte 64 on: it has 64 bytes"):
        load(Parts(manifest, folder), cache=cache, device="null")


def test_an_unknown_option_is_refused(toy):
    with pytest.raises(CallerError, match=r"takes no `thread`: expected some of `cache`, .*"):
        load(toy, thread=1)


def test_an_unknown_device_is_refused(toy):
    with pytest.raises(CallerError, match="no device `tpu`: expected one of cpu, cuda, null"):
        load(toy, device="tpu")


def test_progress_tells_each_stage_in_order(axpy_load):
    stages = []
    buffers = {"w": buffer("weight", "w"), "y": buffer("inout"), "o": buffer("carry")}
    programs = {**RUN, "once": Program((axpy(1.0, "w", "o"),), once=True)}
    axpy_load(
        buffers, programs, Checkpoint(w=range(N)), progress=lambda stage, *_: stages.append(stage)
    )
    assert list(dict.fromkeys(stages)) == ["verify", "modules", "weights", "once"]


def test_a_load_that_fails_late_leaves_no_thread(axpy_load):
    def threads():
        return len(list(Path("/proc/self/task").iterdir()))

    before = threads()
    with pytest.raises(WeightError):
        axpy_load({"w": buffer("weight", "no"), "y": buffer("inout")}, RUN, Checkpoint(), threads=4)
    assert threads() == before
