"""Memory behind states: budgets, chunks, and what is given back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedstone.errors import CapacityError
from bedstone.runtime.cuda.states import States, plan_arenas
from bedstone.runtime.device import StateNeed
from bedstone.runtime.memory import (
    Capacity,
    mapped_bytes,
    plan_capacity,
    plan_chunk,
    state_needs,
)
from bedstone.spec.manifest import Buffer, Domain, Manifest, State, Var
from cuda_fake import GRANULE, Driver

MIB = 2**20
needs = st.lists(
    st.builds(StateNeed, st.integers(0, 40 * GRANULE), st.sampled_from([0, 64, 5 * GRANULE])),
    max_size=6,
).map(tuple)


@given(needs)
def test_every_state_has_its_bytes_and_room_for_all_of_the_budget(needs):
    chunk = plan_chunk(needs, GRANULE)
    arenas = plan_arenas(needs, chunk, GRANULE)
    budget = sum(arena.mapped for need, arena in zip(needs, arenas, strict=True) if need.unit)
    for need, arena in zip(needs, arenas, strict=True):
        assert need.nbytes <= arena.mapped <= arena.reserved or not arena.mapped
        assert arena.mapped - need.nbytes < (chunk if need.unit else GRANULE)
        assert all(piece % GRANULE == 0 for piece in arena.chunks)
        if need.unit:
            assert set(arena.chunks) <= {chunk}
            assert arena.reserved == budget
    assert sum(arena.mapped for arena in arenas) == mapped_bytes(needs, GRANULE)


@pytest.mark.parametrize(
    ("units", "nbytes", "chunk"),
    [
        ((4 * MIB,), 10**9, 2 * MIB),
        ((40 * MIB,), 10**9, 20 * MIB),
        ((41 * MIB,), 10**9, 20 * MIB),
        ((2**30,), 10**12, 64 * MIB),
        ((3 * MIB,), 10**9, 64 * MIB),
        ((4096,), 10**9, 64 * MIB),
        ((4096,), 30 * MIB + 1, 32 * MIB),
        ((4096,), 1, 2 * MIB),
        ((64 * MIB, 8 * MIB), 10**9, 4 * MIB),
        ((), 0, 2 * MIB),
    ],
)
def test_the_size_of_a_chunk(units, nbytes, chunk):
    assert plan_chunk([StateNeed(nbytes, unit) for unit in units], 2 * MIB) == chunk


def pooled(**states):
    tables = {"t": Buffer("i32", ("g", 50), "input", domain=Domain(index_into="kv", stride=16))}
    return Manifest("m", tables, {}, {}, {}, {"g": Var(4, "groups")}, states)


@given(st.integers(1, 3000), st.integers(0, 900), st.integers(0, 600), st.integers(1, 9))
def test_without_tokens_what_fits_is_found_and_fits(a_token, a_slot, room, sequences):
    """Against a walk over every number of pages."""
    states = {"kv": State(bytes_per_token=a_token), "fixed": State(bytes=1000)}
    if a_slot:
        states["rec"] = State(bytes_per_seq=a_slot)
    manifest = pooled(**states)
    free = room * 10_000

    def taken(tokens):
        needs = state_needs(manifest, Capacity(tokens, sequences + 2, 16))
        return mapped_bytes(needs.values(), 4096)

    fitting = [
        pages for pages in range(1, 50 * sequences + 1)
        if taken(16 * pages) <= free - min(2**30, free // 4)
    ]  # fmt: skip
    if not fitting:
        with pytest.raises(CapacityError, match="expected one page of 16"):
            plan_capacity(manifest, None, sequences, free, 4096)
        return
    capacity = plan_capacity(manifest, None, sequences, free, 4096)
    assert capacity.tokens // 16 in fitting
    full = capacity.tokens == 50 * 16 * sequences
    assert full or taken(capacity.tokens + 16) > free - min(2**30, free // 4)


@pytest.fixture
def driver():
    return Driver()


def test_states_start_as_zeros_behind_addresses_that_stay(driver):
    states, stream = States(driver), driver.stream()
    wanted = (StateNeed(3 * GRANULE + 5, 64), StateNeed(9, 0), StateNeed(0, 0))
    first, fixed, empty = states.allocate(plan_arenas(wanted, GRANULE, GRANULE), stream)
    assert (first.nbytes, first.reserved) == (3 * GRANULE + 5, 4 * GRANULE)
    assert (fixed.nbytes, fixed.reserved) == (9, GRANULE)
    assert empty.nbytes == 0
    found = np.ones(first.nbytes, np.uint8)
    driver.copy_out(found.ctypes.data, first.address, first.nbytes, stream)
    driver.sync(stream)
    assert not found.any()
    states.close()
    assert driver.leaks() == {"stream"}
    assert driver.free_bytes() == driver.capacity


def test_too_little_memory_says_how_much_there_is(driver):
    driver.capacity = 3 * GRANULE
    states, stream = States(driver), driver.stream()
    wanted = plan_arenas((StateNeed(4 * GRANULE, 64),), GRANULE, GRANULE)
    with pytest.raises(CapacityError, match=r"262144 bytes of states .*: 0 bytes of device memory"):
        states.allocate(wanted, stream)
    states.close()
    assert driver.leaks() == {"stream"}
