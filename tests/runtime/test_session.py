"""What a caller may write and read, and what it is told otherwise."""

from pathlib import Path

import numpy as np
import pytest

from bedstone.errors import CallerError, CapacityError
from bedstone.runtime.arrays import numpy_dtype
from bedstone.runtime.device import Memory, Places
from bedstone.runtime.domain import Limits, require_inside
from bedstone.runtime.load import Parts, load
from bedstone.runtime.ports import Input, Inputs, Port
from bedstone.runtime.reserve import HostRows
from bedstone.spec.dtype import DTYPE_BYTES
from bedstone.spec.manifest import (
    F32,
    Add,
    BufArg,
    Buffer,
    BufferParam,
    Call,
    Domain,
    Impl,
    KernelLaunch,
    Manifest,
    Module,
    Op,
    Program,
    ScalarParam,
    Var,
)
from runtime_toy import CONTEXT, compile_module


@pytest.fixture(scope="module")
def session(toy, cache):
    with load(toy, cache=cache, threads=1) as session:
        yield session


def ints(*values):
    return np.array(values, np.int32)


def test_a_prefix_is_written_and_the_rest_stays(session):
    session.write("token", ints(*range(8)))
    session.write("token", ints(90, 91))
    assert session.region("token").view(np.int32).tolist() == [90, 91, 2, 3, 4, 5, 6, 7]


def test_bytes_are_elements_too(session):
    session.write("token", ints(5, 6).tobytes())
    assert session.region("token").view(np.int32)[:2].tolist() == [5, 6]


def test_strided_data_is_written_in_its_order(session):
    session.write("token", ints(1, 2, 3, 4, 5, 6)[::2])
    assert session.region("token").view(np.int32)[:3].tolist() == [1, 3, 5]


@pytest.mark.parametrize(
    ("buffer", "data", "message"),
    [
        ("token", np.array([1], np.int64), "buffer `token` takes int32, got int64"),
        ("token", ints(*[0] * 9), "buffer `token` holds 8 elements, got 9"),
        ("token", b"abc", "3 bytes are no whole int32 elements of `token`"),
        ("token", ints(0, -1), "input `token` element 1 is -1: expected 0 to 96"),
        ("position", ints(CONTEXT), f"element 0 is {CONTEXT}: expected 0 to {CONTEXT - 1}"),
        ("slot", ints(3, 40), "input `slot` element 1 is 40: expected 0 to 39"),
        ("pages", ints(9, 10), "input `pages` element 1 is 10: expected 0 to 9"),
        ("next", ints(1), "buffer `next` is output, expected input or inout"),
        ("parts", np.zeros(1, np.int64), "buffer `parts` is workspace, expected input or inout"),
        ("nothing", ints(1), "no buffer `nothing`"),
    ],
)
def test_writes_that_do_not_fit_are_refused_and_change_nothing(session, buffer, data, message):
    before = session.region("token")
    with pytest.raises(CallerError, match=message):
        session.write(buffer, data)
    assert np.array_equal(session.region("token"), before)


@pytest.mark.parametrize("buffer", ["token", "parts", "chain.at"])
def test_only_outputs_are_read(session, buffer):
    with pytest.raises(CallerError, match=f"buffer `{buffer}` is .*, expected output or inout"):
        session.read(buffer)


def test_what_is_read_is_a_copy(session):
    session.read("next")[:] = 77
    assert session.read("next").tolist() != [77]


@pytest.mark.parametrize(("offset", "nbytes"), [(-1, 4), (0, 321), (300, 30), (8, -16)])
def test_only_bytes_of_a_state_are_cleared(session, offset, nbytes):
    with pytest.raises(CallerError, match="state `kv` has 320 bytes"):
        session.clear("kv", offset, nbytes)


def test_bytes_of_a_state_are_what_a_caller_fills_them_with(toy, cache):
    with load(toy, cache=cache, threads=1) as session:
        before = session.region("kv")
        given = np.arange(1, 9, dtype=np.uint8)
        session.fill("kv", 16, given)
        after = session.region("kv")
        assert np.array_equal(after[16:24], given)
        assert np.array_equal(np.delete(after, range(16, 24)), np.delete(before, range(16, 24)))
        session.fill("kv", 0, np.arange(16, dtype=np.uint8)[::2])
        assert session.region("kv")[:8].tolist() == [*range(0, 16, 2)]


@pytest.mark.parametrize(("offset", "nbytes"), [(-1, 4), (0, 321), (300, 30)])
def test_only_bytes_of_a_state_are_filled(session, offset, nbytes):
    with pytest.raises(CallerError, match="state `kv` has 320 bytes"):
        session.fill("kv", offset, np.zeros(nbytes, np.uint8))
    with pytest.raises(CallerError, match="no state `next`"):
        session.fill("next", 0, np.zeros(1, np.uint8))


def test_no_program_of_that_name(session):
    with pytest.raises(
        CallerError, match="no program `go`; there are `chained`, `decode`, `prefill`"
    ):
        session.run("go")


def test_everything_starts_as_zeros(toy, cache):
    with load(toy, cache=cache, threads=1) as session:
        names = [*session.manifest.buffers, *session.manifest.states]
        assert not any(session.region(name).any() for name in names)


def test_a_closed_session_says_so(toy, cache):
    with load(toy, cache=cache, threads=1) as session:
        pass
    for use in (
        lambda: session.run("decode"),
        lambda: session.read("next"),
        lambda: session.write("token", ints(1)),
        lambda: session.region("kv"),
        lambda: session.clear("kv", 0, 8),
        lambda: session.fill("kv", 0, np.zeros(8, np.uint8)),
    ):
        with pytest.raises(CallerError, match="the session is closed"):
            use()


@pytest.fixture(scope="module")
def floats(tmp_path_factory, cache):
    folder = tmp_path_factory.mktemp("axpy")
    sha256 = compile_module(Path(__file__).with_name("axpy.c"), folder, cache)
    params = (ScalarParam("f32"), BufferParam("in", "f32"), BufferParam("inout", "f32"))
    launch = KernelLaunch("m", "axpy", (1, 1, 1), ("n", 1, 1))
    domain = Domain(min=-1.5, max=Add("n", 2))
    manifest = Manifest(
        "axpy",
        {"x": Buffer("f32", (8,), "input", domain=domain), "y": Buffer("f32", (8,), "inout")},
        {"m": Module("axpy", sha256)},
        {"axpy": Op(params, Impl((launch,)))},
        {"run": Program((Call("axpy", (F32(2.0), BufArg("x"), BufArg("y"))),))},
        vars={"n": Var(8)},
    )
    with load(Parts(manifest, folder), cache=cache, threads=2) as session:
        yield session


def test_an_inout_buffer_is_written_and_read(floats):
    floats.write("x", np.array([1, 2, 3], np.float32))
    floats.write("y", np.array([10, 10, 10, 10], np.float32))
    floats.run("run", n=2)
    assert floats.read("y")[:4].tolist() == [12, 14, 10, 10]


def test_a_bound_that_reads_vars_is_taken_at_the_call_s(floats):
    floats.write("x", np.array([5.0], np.float32), n=3)
    floats.write("x", np.array([10.0], np.float32))
    with pytest.raises(CallerError, match=r"element 0 is 5.5: expected -1.5 to 5"):
        floats.write("x", np.array([5.5], np.float32), n=3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n": 9}, r"input `x`: var `n` = 9 outside declared \[1, 8\]"),
        ({"n": 0}, r"input `x`: var `n` = 0 outside declared \[1, 8\]"),
        ({"n": 2.0}, r"input `x`: var `n` is 2.0, expected an integer"),
        ({"m": 1}, r"input `x`: the manifest declares no var `m`"),
    ],
)
def test_a_var_out_of_range_widens_no_bound(floats, given, message):
    with pytest.raises(CallerError, match=message):
        floats.write("x", np.array([10.5], np.float32), **given)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.75])
def test_what_is_no_number_is_in_no_domain(floats, value):
    with pytest.raises(CallerError, match=rf"element 1 is {value}: expected -1.5 to 10"):
        floats.write("x", np.array([0.0, value], np.float32))


def test_collected_runs_match_single_ones(floats):
    floats.write("x", np.array([1] * 8, np.float32))
    floats.write("y", np.zeros(8, np.float32))
    (after,) = floats.repeat("run", 5, ["y"], n=8)
    assert after.tolist() == [[2.0 * (i + 1)] * 8 for i in range(5)]
    assert floats.read("y").tolist() == after[-1].tolist()


def test_runs_that_cannot_be_collected_are_refused(floats):
    with pytest.raises(CallerError, match="`times` is 0, expected 1 at least"):
        floats.repeat("run", 0, ["y"], n=8)
    for times in (2**50, 2**70):
        with pytest.raises(CapacityError, match=f"no memory for {times} times 32 bytes"):
            floats.repeat("run", times, ["y"], n=8)


def test_every_element_type_has_its_size():
    assert {name: numpy_dtype(name).itemsize for name in DTYPE_BYTES} == DTYPE_BYTES


def test_small_floats_are_compared_by_value():
    codes = np.array([126, 127, 129], np.uint8).view(numpy_dtype("fp8e8m0"))
    require_inside("s", codes, Limits(0.5, 4.0))
    with pytest.raises(CallerError, match=r"element 2 is 4\.0: expected 0.5 to 3"):
        require_inside("s", codes, Limits(0.5, 3))
    with pytest.raises(CallerError, match="element 0 is nan"):
        require_inside("s", np.array([255], np.uint8).view(numpy_dtype("fp8e8m0")), Limits(0, None))


def test_a_rising_input_must_not_fall():
    rising = Limits(None, None, monotone=True)
    require_inside("cu", ints(0, 3, 3, 9), rising)
    with pytest.raises(CallerError, match="`cu` must not fall: element 2 is 2 after 3"):
        require_inside("cu", ints(0, 3, 2), rising)


def test_unsigned_indices_are_compared_as_numbers():
    with pytest.raises(CallerError, match=f"element 0 is {2**63}: expected 0 to 9"):
        require_inside("i", np.array([2**63], np.uint64), Limits(0, 9))


def test_an_input_is_written_part_by_part(session):
    session.write("token", ints(*range(8)))
    token = session.input("token")
    token.values[2:4] = 90, 91
    token.write(2, first=2)
    assert session.region("token").view(np.int32).tolist() == [0, 1, 90, 91, 4, 5, 6, 7]


def alone(limits: Limits | None) -> Input:
    """Four numbers of 32 bits that go nowhere."""
    port = Port("input", Memory(0, 16, None), np.dtype(np.int32), (4,), None, limits)
    return Input("i", port, limits, lambda *_: None, lambda *_: None)


def test_single_elements_of_an_input_are_written(session):
    session.write("token", ints(*range(8)))
    token = session.input("token")
    token.put_places(Places(np.array([6, 1, 3]), 1, 6, 0, 0), np.array([86, 81, 83]))
    assert session.region("token").view(np.int32).tolist() == [0, 81, 2, 83, 4, 5, 86, 7]
    assert token.values[[6, 1, 3]].tolist() == [86, 81, 83]


@pytest.mark.parametrize(
    "box", [(0, 8, 0, 0), (-1, 0, 0, 0), (2, 1, 0, 0), (0, 0, 0, 1), (0, 0, -1, 0)]
)
def test_places_that_are_not_there_are_refused(session, box):
    before = session.region("token")
    top, bottom, left, right = box
    message = (
        f"input `token` has 8 rows of 1, not rows {top} to {bottom} with columns {left} to {right}"
    )
    with pytest.raises(CallerError, match=message):
        session.input("token").put_places(Places(np.array([0]), *box), np.array([1]))
    assert np.array_equal(session.region("token"), before)


@pytest.mark.parametrize(("low", "high"), [(-1, 5), (0, 97)])
def test_numbers_that_may_be_outside_are_refused(session, low, high):
    before = session.region("token")
    token = session.input("token")
    token.put_between([3, 4], 3, 4)
    assert session.region("token").view(np.int32)[:2].tolist() == [3, 4]
    with pytest.raises(CallerError, match=f"input `token` takes 0 to 96, not {low} to {high}"):
        token.put_between([1, 2], low, high)
    with pytest.raises(CallerError, match="takes 0 to 96"):
        token.require_between(low, high)
    assert session.region("token").view(np.int32)[:2].tolist() == [3, 4]
    assert np.array_equal(session.region("token")[8:], before[8:])


def test_numbers_that_may_not_fall_are_looked_at_one_by_one():
    rising = alone(Limits(0, 9, monotone=True))
    rising.put_between([1, 2, 2], 0, 9)
    with pytest.raises(CallerError, match="must not fall"):
        rising.put_between([2, 1], 0, 9)


def test_an_input_with_rows_takes_whole_ones(session):
    pages = session.input("pages")
    pages.values[:] = 3
    pages.write(1)
    assert session.region("pages").view(np.int32).tolist() == [3] * 10


@pytest.mark.parametrize(
    ("rows", "first", "value", "message"),
    [
        (9, 0, 1, r"input `token` has 8 elements, \[0, 9\) are not inside"),
        (1, -1, 1, r"\[-1, 0\) are not inside"),
        (-1, 4, 1, r"\[4, 3\) are not inside"),
        (2, 1, 97, "input `token` element 0 is 97: expected 0 to 96"),
    ],
)
def test_parts_that_do_not_fit_are_refused(session, rows, first, value, message):
    before = session.region("token")
    token = session.input("token")
    token.values[:] = value
    with pytest.raises(CallerError, match=message):
        token.write(rows, first)
    assert np.array_equal(session.region("token"), before)


def test_inputs_are_written_together(session):
    parts = Inputs([(session.input("position"), 0), (session.input("token"), 1)])
    values = np.array([[3, 4, 5], [7, 8, 9]], np.int32)
    parts.put(values)
    parts.put(values[::-1, :2])
    held = [session.region(name).view(np.int32)[:3].tolist() for name in ("position", "token")]
    assert held == [[7, 8, 5], [3, 4, 9]]


@pytest.mark.parametrize(
    ("limits", "low", "high", "fits"),
    [
        (None, -(2**31), 2**31 - 1, True),
        (Limits(None, None), -(2**31), 2**31 - 1, True),
        (Limits(0, 9), 0, 9, True),
        (Limits(0, 9), -1, 9, False),
        (Limits(0, 9), 0, 10, False),
        (Limits(None, 9), -(2**31), 9, True),
        (Limits(-3, None), -4, 0, False),
        (Limits(0.5, 1.5), 1, 1, True),
        (Limits(0.5, 1.5), 0, 1, False),
        (Limits(5, 4), 4, 5, False),
    ],
)
def test_limits_hold_for_several_inputs_as_for_one(limits, low, high, fits):
    parts = Inputs([(alone(None), 1), (alone(limits), 0), (alone(limits), 0)])
    parts.require_between(1, low, high)
    if fits:
        parts.require_between(0, low, high)
        return
    with pytest.raises(CallerError, match="input `i` takes"):
        parts.require_between(0, low, high)


def test_inputs_that_may_not_fall_are_looked_at_with_each_step():
    parts = Inputs([(alone(Limits(0, 9, monotone=True)), 1), (alone(Limits(0, 9)), 0)])
    parts.put(np.array([[3, 2], [1, 2]], np.int32))
    with pytest.raises(CallerError, match="must not fall"):
        parts.put(np.array([[1, 2], [2, 1]], np.int32))


def test_only_inputs_are_written_part_by_part(session):
    with pytest.raises(CallerError, match="buffer `next` is output"):
        session.input("next")


def test_bytes_of_a_state_are_copied_saved_and_restored(toy, cache):
    with load(toy, cache=cache, threads=1) as session:
        given = np.arange(1, 17, dtype=np.uint8)
        room = session.reserve(64)
        session.fill("kv", 16, given)
        session.copy("kv", 160, 16, 16)
        # two rows of 8 bytes, which lie 24 apart on the host
        room.save([HostRows("kv", 160, 16, 8, 2, 24)]).wait()
        session.clear("kv", 160, 16)
        room.restore([HostRows("kv", 240, 16, 8, 2, 24), HostRows("kv", 224, 40, 8)]).wait()
        found = session.region("kv").reshape(-1, 16)
        assert np.array_equal(found[15], given)
        assert np.array_equal(found[14], [*given[8:], *[0] * 8])
        assert not found[10:14].any()
        beyond = [HostRows("kv", 310, 0, 16)]
        for call in (lambda: session.copy("kv", 310, 0, 16), lambda: room.save(beyond)):
            with pytest.raises(CallerError, match="state `kv` has 320 bytes"):
                call()
        for at, *size in ((-1, 8), (57, 8), (0, 65), (0, 8, 3, 29), (0, 8, 2, 7), (0, 8, 0)):
            for move in (room.save, room.restore):
                with pytest.raises(CallerError, match="is not inside a reserve of 64 bytes"):
                    move([HostRows("kv", 0, at, *size)])
        room.close()
        with pytest.raises(CallerError, match="no state `next`"):
            session.copy("next", 0, 0, 1)
        kept = session.reserve(64)
    # what a session had is let go of with it
    kept.close()
    with pytest.raises(CallerError, match="the session is closed"):
        kept.save([HostRows("kv", 0, 0, 8)])
