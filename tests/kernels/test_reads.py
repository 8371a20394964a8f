"""What entries tell ahead that they will read: the rows of tables that a batch attends."""

import ctypes

import numpy as np
import pytest

from kernels.harness import AVAILABLE, Library, guards_of, pack, poison
from kernels.test_attention import Case, problem
from kernels.test_panels import given, in_panels

RANGES = 512


@pytest.fixture(params=AVAILABLE)
def library(request: pytest.FixtureRequest, libraries: dict[str, Library]) -> Library:
    """Those of the CPU's sets: no other tells."""
    return libraries[request.param]


class Range(ctypes.Structure):
    _fields_ = (("at", ctypes.c_uint64), ("end", ctypes.c_uint64))


class Coming(ctypes.Structure):
    _fields_ = (("now", Range), ("next", ctypes.c_void_p), ("last", ctypes.c_void_p))


def told(library: Library, args: dict, share: tuple[int, int, int], most: int = RANGES) -> set:
    """The rows of k and v that a share of the blocks reads, as (table, row)."""
    kernel = library.kernels.kernels["attention_pieces"]
    y = poison((args["rows"], args["heads"], args["dv"]), np.float32)
    guards = guards_of(kernel, args | {"y": y})
    parts = np.zeros(1, np.float32)
    for name in kernel.parts:
        guards[name] = (parts, parts, parts)
    library.load(frozenset({kernel.module}))
    stage = kernel.launches[0]
    reads = library.loaded[kernel.module][f"bs_reads_{stage.entry}"]
    reads.argtypes = [ctypes.c_void_p, *[ctypes.c_uint64] * 3, ctypes.c_void_p, ctypes.c_int32]
    ranges = (Range * most)()
    words = pack(stage.params, args | {"y": y}, guards)
    count = reads(words, *share, ranges, most)
    assert 0 <= count <= most
    rows = set()
    for each in ranges[:count]:
        for name in ("k", "v"):
            inner = guards[name][1]
            pitch, at = inner[0].nbytes, each.at - inner.ctypes.data
            if 0 <= at < inner.nbytes:
                assert at % pitch == 0
                assert (each.end - each.at) % pitch == 0
                rows |= {(name, at // pitch + i) for i in range((each.end - each.at) // pitch)}
    return rows


def seen(case: Case, args: dict) -> set:
    """Those that any row attends."""
    rows = set()
    for r, last in enumerate(case.positions):
        first = max(last - case.window + 1, 0) if case.window else 0
        for t in range(first, last + 1):
            page = args["pages"][r * case.stride, t // case.page]
            rows |= {(name, int(page) * case.page + t % case.page) for name in ("k", "v")}
    return rows


BATCHES = {
    "a batch": Case(6, 3, 32, 32, (3, 1277, 0, 130, 128, 127, 640), stride=1, page=32),
    "a window": Case(4, 2, 32, 32, (700, 20, 300), window=300, page=7, stride=1),
}


@pytest.mark.parametrize("case", BATCHES.values(), ids=BATCHES)
def test_shares_together_tell_all_that_rows_attend(library: Library, case: Case) -> None:
    args = problem(case).args
    apart = [told(library, args, (from_, from_ + 8, 32)) for from_ in range(0, 32, 8)]
    assert set.union(*apart) == seen(case, args) == told(library, args, (0, 32, 32))
    assert sum(map(len, apart)) == len(seen(case, args))


def test_no_more_ranges_are_told_than_there_is_room_for(library: Library) -> None:
    args = problem(BATCHES["a batch"]).args
    assert len(told(library, args, (0, 32, 32), most=3)) == 4 + 4 + 32


def test_positions_that_are_not_yet_written_do_no_harm(library: Library) -> None:
    args = problem(BATCHES["a batch"]).args
    for wild in (2**31 - 1, 1 << 20, -(2**31), -1):
        position = np.full_like(args["position"], wild)
        told(library, args | {"position": position}, (0, 16, 32))


def test_a_batch_of_many_rows_tells_nothing(library: Library) -> None:
    case = Case(2, 1, 16, 16, tuple(range(65)), stride=1)
    assert told(library, problem(case).args, (0, 32, 32)) == set()


@pytest.mark.parametrize("name", ["q4_1", "q8_0"])
def test_no_bit_depends_on_what_is_sent_for_along(library: Library, name: str) -> None:
    entry = f"panels_linear_q_{name}"
    kernel = library.kernels.kernels[entry]
    args = given(kernel, name, 17, 576)
    args["w"] = in_panels(args["w"], name)
    again = args | {"y": args["y"].copy()}
    library.call(entry, **args)
    memory = np.zeros(1 << 16, np.uint8)
    ranges = (Range * 2)(
        Range(memory.ctypes.data, memory.ctypes.data + 100), Range(64, 64 + 3 * 64)
    )
    start = ctypes.addressof(ranges)
    coming = Coming(Range(0, 0), start, start + ctypes.sizeof(ranges))
    along = ctypes.CFUNCTYPE(ctypes.c_void_p)(lambda: ctypes.addressof(coming))
    variable = ctypes.c_void_p.in_dll(library.loaded[kernel.module], "bs_along")
    assert not variable.value
    variable.value = ctypes.cast(along, ctypes.c_void_p).value
    try:
        library.call(entry, **again)
    finally:
        variable.value = None
    np.testing.assert_array_equal(args["y"], again["y"])
    if library.hardware in ("cpu-x86-64-v4", "cpu-x86-64-zen4"):
        assert coming.next == coming.last
        assert coming.now.at >= coming.now.end
