"""Capacities, leases and what a call writes: pure, so tested on numbers alone."""

import math
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bedstone.errors import CallerError, CapacityError
from bedstone.runtime.inputs import Feed, call_inputs, table_inputs
from bedstone.runtime.lease import Lease, whole_lease
from bedstone.runtime.memory import (
    Capacity,
    Exchange,
    plan_arena,
    plan_capacity,
    plan_exchange,
    state_bytes,
    state_needs,
)
from bedstone.spec.codec import parse
from bedstone.spec.manifest import Buffer, Domain, Manifest, State, Var
from bedstone.verify.protocol import AxisVar, LineTable, PageTable, Role
from conformance_cases import accepted_text

FREE = 2**40


def pooled(strides=(4,), width=10, **states):
    tables = {
        f"t{i}": Buffer("i32", ("g", width), "input", domain=Domain(index_into="kv", stride=s))
        for i, s in enumerate(strides)
    }
    slots = {"slot": Buffer("i32", ("g",), "input", fill="slot", domain=Domain(index_into="kv"))}
    declared = {"kv": State(bytes_per_token=8), **states}
    return Manifest("m", {**tables, **slots}, {}, {}, {}, {"g": Var(16, "groups")}, declared)


def test_without_tokens_every_sequence_gets_a_full_row():
    assert plan_capacity(pooled(), None, 3, FREE) == Capacity(120, 5, 4)


def test_memory_caps_what_nobody_asked_for():
    capacity = plan_capacity(pooled(), None, 1, 8 * 40)  # a quarter stays free: 30 tokens
    assert capacity.tokens == 28
    assert capacity.notes == (
        "memory holds 30 tokens of the 40 the page tables reach",
        "30 tokens are rounded down to 28, whole pages of 4",
    )


def test_live_sequences_are_not_the_var_s_maximum():
    manifest = pooled(rec=State(bytes_per_seq=100))
    assert state_bytes(manifest.states["rec"], plan_capacity(manifest, 8, 1, FREE)) == 300


def test_one_page_serves_every_table():
    assert plan_capacity(pooled((4, 6)), 50, 1, FREE) == Capacity(
        48, 3, 12, ("50 tokens are rounded down to 48, whole pages of 12",)
    )


@pytest.mark.parametrize(("tokens", "free"), [(11, FREE), (None, 60), (0, FREE)])
def test_less_than_one_page_is_refused(tokens, free):
    with pytest.raises(CapacityError, match="expected one page of 12 at least"):
        plan_capacity(pooled((4, 6)), tokens, 1, free)


def test_no_sequences_are_refused():
    with pytest.raises(CapacityError, match="`sequences` is 0"):
        plan_capacity(pooled(), 8, 0, FREE)


def test_a_state_is_many_sequences_where_more_than_one_is_live():
    for sequences in (1, 2, 9):
        capacity = plan_capacity(pooled(), None, sequences, FREE)
        (need,) = state_needs(pooled(), capacity).values()
        assert need.many == (sequences > 1)


def test_a_fixed_state_keeps_its_size():
    assert state_bytes(State(bytes=24), Capacity(100, 9, 4)) == 24


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 5000)))
def test_an_arena_aligns_and_never_overlaps(sizes):
    offsets, total = plan_arena(sizes)
    taken = sorted((offsets[name], offsets[name] + size) for name, size in sizes.items())
    assert all(start % 64 == 0 for start, _ in taken)
    assert all(end <= start for (_, end), (start, _) in pairwise(taken))
    assert total >= max((end for _, end in taken), default=0)


def protocol(tables, page=None, lines=()):
    return SimpleNamespace(
        page_tables=tables, page_tokens=page, line_tables=lines,
        groups=AxisVar("g", 3), ranks=AxisVar("r", 4),
    )  # fmt: skip


@given(st.permutations(range(6)), st.sampled_from([(4,), (2, 6), (3, 4)]))
def test_a_token_s_slot_is_where_every_table_points(order, strides):
    unit = math.lcm(*strides)
    tables = [PageTable(f"t{s}", "kv", s, 6 * unit // s) for s in strides]
    lease = whole_lease(protocol(tables, unit), Capacity(6 * unit, 3, unit), order)
    for table in tables:
        entries = lease.page_entries(table)
        for position in range(lease.tokens):
            page, inside = divmod(position, table.tokens)
            assert lease.token_slot(position) == entries[page] * table.tokens + inside


def test_a_short_lease_repeats_its_first_page():
    assert Lease((5, 3), 4).page_entries(PageTable("t", "kv", 4, 5)) == [5, 3, 5, 5, 5]


def test_a_lease_is_no_longer_than_a_row():
    found = whole_lease(protocol([PageTable("t", "kv", 4, 3)], 4), Capacity(100, 3, 4))
    assert found.pages == (0, 1, 2)


@pytest.mark.parametrize("pages", [[0, 0], [0, 25], [-1]])
def test_pages_that_are_not_there_are_refused(pages):
    with pytest.raises(CallerError, match="each from 0 to 24"):
        whole_lease(protocol([PageTable("t", "kv", 4, 30)], 4), Capacity(100, 3, 4), pages)


@pytest.mark.parametrize(
    ("over", "shape", "ours"),
    [(None, (2, 1, 1), [3, 4]), ("groups", (2, 3, 1), [3, 4]), ("ranks", (2, 4, 2), [3, 4])],
)
def test_line_tables_point_at_our_slot_and_the_null_one(over, shape, ours):
    table = LineTable("t", "rec", 8, 3, 2, over, shape[2])
    ((name, entries),) = table_inputs(protocol([], lines=[table]), Lease((), 1))
    assert (name, entries.shape, entries.dtype) == ("t", shape, np.int32)
    assert entries[:, 0, 0].tolist() == ours
    assert all(entries[:, column, 0].tolist() == [0, 1] for column in range(1, shape[1]))


def test_more_lines_than_the_state_holds_are_refused():
    table = LineTable("t", "rec", 8, 2, 3, None)
    with pytest.raises(CallerError, match="names 3 lines a sequence, state `rec` holds 2"):
        list(table_inputs(protocol([], lines=[table]), Lease((), 1)))


FILLS = {
    "token": [40, 41, 42],
    "position": [6, 7, 8],
    "valid": [1, 1, 1],
    "slot": [2, 3, 12],
    "seq_len": [9],
    "cu_seqlens": [0, 3, 3, 3],
    "blocks": [0, 3, 3, 3],
    "temperature": [0.0],
    "top_k": [1],
    "top_p": [1.0],
    "min_p": [0.0],
    "seed": [0],
}


@pytest.mark.parametrize("fill", FILLS)
def test_each_fill_of_a_call(fill):
    dtype = "f32" if fill in {"temperature", "top_p", "min_p"} else "i64"
    feed = Feed([40, 41, 42], 6, Lease((5, 0, 3), 4))
    ((name, values),) = call_inputs([Role("b", fill, dtype, "rows", 4)], feed)
    assert (name, values.tolist()) == ("b", FILLS[fill])
    assert values.itemsize == (4 if dtype == "f32" else 8)


SEVERAL = (Feed([40], 6, Lease((5, 0, 3), 4)), Feed([41], 9, Lease((2, 1, 4), 4, slot=2)))


@pytest.mark.parametrize("fill", FILLS)
def test_each_fill_of_a_call_of_several_sequences(fill):
    """A row of each: one value after the other, but for where the rows of each begin."""
    dtype = "f32" if fill in {"temperature", "top_p", "min_p"} else "i32"
    role = Role("b", fill, dtype, None if fill in {"cu_seqlens", "blocks"} else "groups", 4)
    ((_, values),) = call_inputs([role], *SEVERAL)
    if fill in {"cu_seqlens", "blocks"}:
        assert values.tolist() == ([0, 1, 2, 2] if fill == "cu_seqlens" else [0, 2, 2, 2])
        return
    each = [next(call_inputs([role], feed))[1].tolist() for feed in SEVERAL]
    assert values.tolist() == each[0] + each[1]
    assert len(values) == 2


def test_tables_have_a_row_or_a_column_for_each_sequence():
    leases = [feed.lease for feed in SEVERAL]
    paged = protocol([PageTable("t", "kv", 4, 4)], lines=[LineTable("l", "rec", 8, 3, 2, "groups")])
    tables = dict(table_inputs(paged, *leases))
    assert tables["t"].tolist() == [5, 0, 3, 5, 2, 1, 4, 2]
    assert tables["l"][:, :, 0].tolist() == [[3, 6, 0], [4, 7, 1]]
    with pytest.raises(CallerError, match="`l` has no columns for 4 sequences"):
        dict(table_inputs(paged, *leases, *leases))


def test_a_token_for_each_sequence_is_its_first():
    feed = Feed([40, 41], 0, Lease((0,), 4))
    ((_, values),) = call_inputs([Role("b", "token", "i32", "groups", 4)], feed)
    assert values.tolist() == [40]


def test_a_host_state_is_not_sized_here():
    manifest = parse(accepted_text("09_host_states").encode())
    host = [state for state in manifest.states.values() if state.host]
    assert [state_bytes(state, Capacity(5, 3, 1)) for state in host] == [0] * len(host)


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=3),
    st.lists(st.integers(1, 90), min_size=1, max_size=3),
    st.integers(1, 12),
    st.integers(1, 6),
    st.integers(1, 64),
)
def test_what_states_can_have_of_each_other_is_what_a_count_finds(
    paged, own, pages, sequences, chunk
):
    states = {f"p{i}": State(bytes_per_token=n) for i, n in enumerate(paged)}
    states |= {f"s{i}": State(bytes_per_seq=n) for i, n in enumerate(own)}
    manifest = Manifest("m", {}, {}, {}, {}, {}, {"fixed": State(bytes=77), **states})
    unit = 4
    capacity = Capacity(unit * pages, sequences + 2, unit)

    def chunks(tokens, slots):
        return sum(-(-tokens * n // chunk) for n in paged) + sum(
            -(-slots * n // chunk) for n in own
        )

    budget = chunks(capacity.tokens, capacity.slots)
    counts = range(1, 40 * budget * chunk + 2)
    tokens = next(unit * n for n in counts if chunks(unit * (n + 1), 2) > budget)
    slots = next(n for n in counts if chunks(unit, n + 1) > budget)
    found = plan_exchange(manifest, capacity, chunk)
    if (tokens, slots) == (capacity.tokens, capacity.slots):
        assert found is None
    else:
        assert found == Exchange(chunk, tokens, slots)
        assert replace(capacity, exchange=found).reach == (tokens, slots)


@pytest.mark.parametrize("states", [{"rec": State(bytes_per_seq=8)}, {}])
def test_states_of_one_kind_have_nothing_of_each_other(states):
    manifest = Manifest("m", {}, {}, {}, {}, {}, {"fixed": State(bytes=9), **states})
    assert plan_exchange(manifest, Capacity(0, 8, 1), 4) is None
    assert plan_exchange(pooled(), Capacity(80, 8, 4), 4) is None
