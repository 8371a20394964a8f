"""What a call costs does not grow with the pool, nor with what else is kept."""

import sys
from time import perf_counter

import pytest

from bedstone.pool import Arena, Arenas, Geometry, HostRoom, Pool, PrefixTree

SMALL, LARGE = 300, 300_000
TOLERANCE = 10
"""A thousandth of what a scan of all pages would cost more."""


def steps(call) -> int:
    """How many lines of Python a call runs: the same each time."""
    count = 0

    def traced(_frame, event, _argument):
        nonlocal count
        count += event == "line"
        return traced

    sys.settrace(traced)
    try:
        call()
    finally:
        sys.settrace(None)
    return count


def seconds(call) -> float:
    """The least time of several, which also counts what C code does."""
    best = float("inf")
    for _ in range(20):
        start = perf_counter()
        call()
        best = min(best, perf_counter() - start)
    return best


def half_full(pages: int, *, remaps: bool) -> Pool:
    """A pool of which half is held, with holes in it."""
    arenas = Arenas(
        64, (Arena(8, pages // 8 + 1),), (Arena(8, pages // 8 + 1),), pages * 2, pages * 2
    )
    pool = Pool(
        Geometry(pages=pages, unit=4, row=64, slots=pages),
        HostRoom(pages * 20, page_bytes=10, slot_bytes=10, grain=10),
        arenas if remaps else None,
    )
    leases = [pool.lease(20) for _ in range(pages // 10)]
    for lease in leases[::7]:
        lease.close()
    return pool


def one_of_each(pool: Pool) -> None:
    """A sequence's life: begun, extended, kept, gone on with, parked, woken, over."""
    lease = pool.lease(40)
    lease.advance(30)
    lease.extend(80)
    with lease.checkpoint() as checkpoint, pool.lease(60, checkpoint), lease.fork(48):
        pass
    checkpoint = lease.retire()
    parked = pool.park(checkpoint)
    checkpoint.close()
    pool.wake(parked).awake().close()
    parked.close()
    assert pool.pages.free
    assert pool.slots.kept == 0


@pytest.mark.parametrize("remaps", [False, True])
def test_a_sequence_costs_the_same_in_a_pool_a_thousand_times_as_large(remaps):
    small, large = half_full(SMALL, remaps=remaps), half_full(LARGE, remaps=remaps)
    one_of_each(small)
    one_of_each(large)
    assert steps(lambda: one_of_each(large)) == steps(lambda: one_of_each(small))
    assert seconds(lambda: one_of_each(large)) < TOLERANCE * seconds(lambda: one_of_each(small))


def kept(prefixes: int) -> tuple[Pool, PrefixTree]:
    """A tree of so many prefixes, all of the same first page."""
    pool = Pool(Geometry(pages=100_000, unit=4, row=1000), HostRoom(10**6, 10, grain=10))
    tree = PrefixTree(pool)
    for number in range(prefixes):
        keep(pool, tree, [9, 9, 9, 9, number, 1, 2, 3, 4])
    return pool, tree


def keep(pool: Pool, tree: PrefixTree, tokens) -> None:
    lease = pool.lease(len(tokens))
    lease.advance(len(tokens))
    tree.insert(tokens, lease.retire())


@pytest.fixture(scope="module")
def few():
    return kept(10)


@pytest.fixture(scope="module")
def many():
    return kept(10_000)


def found_and_kept(pool: Pool, tree: PrefixTree) -> None:
    """One is found, another goes in, the coldest goes out."""
    assert tree.lookup([9, 9, 9, 9, 5, 1, 2, 3, 4, 5]).length == 9
    assert tree.lookup([9, 9, 9, 9, -2, 1]).length == 4
    keep(pool, tree, [9, 9, 9, 9, -1, 1, 2, 3, 4])
    tree.evict().close()
    tree.shed()


def test_a_prefix_is_found_and_kept_as_fast_among_a_thousand_times_as_many(few, many):
    found_and_kept(*few)
    found_and_kept(*many)
    assert steps(lambda: found_and_kept(*many)) == steps(lambda: found_and_kept(*few))


def test_a_lookup_is_linear_in_its_tokens():
    pool, tree = kept(1)
    for length in (1000, 2000):
        keep(pool, tree, [0] * length)
    short, long = [0] * 999, [0] * 1999
    assert seconds(lambda: tree.lookup(long)) < TOLERANCE * seconds(lambda: tree.lookup(short))
    assert steps(lambda: tree.lookup(long)) < 3 * steps(lambda: tree.lookup(short))
