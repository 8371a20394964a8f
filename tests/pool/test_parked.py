"""The host tier: what lies where, and what is moved only once."""

import pytest

from bedstone.errors import CallerError
from bedstone.pool import (
    Busy,
    Geometry,
    HostFull,
    HostRoom,
    Moves,
    PageMove,
    Pool,
    PrefixTree,
    SlotMove,
)

BOTH = Geometry(pages=8, unit=4, row=6, slots=4)
PAGED = Geometry(pages=8, unit=4, row=6)
ROOM = HostRoom(1000, page_bytes=90, slot_bytes=150, grain=100)


def kept(pool: Pool, tokens: int):
    lease = pool.lease(tokens)
    lease.advance(tokens)
    return lease.retire()


def test_pages_lie_at_the_low_end_and_slots_at_the_high_one():
    pool = Pool(BOTH, ROOM)
    checkpoint = kept(pool, 10)
    parked = pool.park(checkpoint)
    assert parked.moves == Moves(
        to_host=True, pages=(PageMove(0, 0, 3),), slots=(SlotMove(1, 800),)
    )
    assert pool.host_free == 1000 - 3 * 100 - 200
    assert pool.pages.kept == 3
    checkpoint.close()
    assert pool.pages.free == 8


def test_what_was_parked_and_woken_is_parked_again_for_nothing():
    pool = Pool(BOTH, ROOM)
    checkpoint = kept(pool, 10)
    parked = pool.park(checkpoint)
    checkpoint.close()
    waking = pool.wake(parked)
    assert waking.moves == Moves(
        to_host=False, pages=(PageMove(0, 0, 3),), slots=(SlotMove(1, 800),)
    )
    awake = waking.awake()
    assert (awake.pages, awake.slot, awake.length) == ((0, 1, 2), 1, 10)
    again = pool.park(awake)
    assert not again.moves
    parked.close()
    awake.close()
    assert pool.host_free == 500
    again.close()
    assert pool.host_free == 1000


def test_pages_that_two_have_are_moved_once_either_way():
    pool = Pool(PAGED, ROOM)
    short = kept(pool, 8)
    lease = pool.lease(16, short)
    lease.advance(8)
    long = lease.retire()
    first, second = pool.park(short), pool.park(long)
    assert second.moves == Moves(to_host=True, pages=(PageMove(2, 200, 2),))
    long.close()
    waking = pool.wake(second)
    assert waking.moves == Moves(to_host=False, pages=(PageMove(2, 200, 2),))
    short.close()
    assert pool.pages.kept == 4
    for held in (first, second, waking):
        held.close()
    assert (pool.pages.free, pool.host_free) == (8, 1000)


def test_pages_on_their_way_are_not_shared_before_they_are_there():
    pool = Pool(PAGED, ROOM)
    checkpoint = kept(pool, 8)
    parked = pool.park(checkpoint)
    checkpoint.close()
    one, two = pool.wake(parked), pool.wake(parked)
    assert two.moves.pages == (PageMove(2, 0, 2),)
    one.awake()
    assert not pool.wake(parked).moves
    assert not pool.park(two.awake()).moves


def test_only_the_part_that_is_needed_wakes():
    pool = Pool(PAGED, ROOM)
    checkpoint = kept(pool, 10)
    parked = pool.park(checkpoint)
    checkpoint.close()
    waking = pool.wake(parked, 4)
    assert (waking.moves.pages, waking.length) == ((PageMove(0, 0, 1),), 4)
    with pytest.raises(CallerError, match="6 tokens of a state of 10"):
        pool.wake(parked, 6)


def test_a_place_that_is_written_again_is_no_twin():
    pool = Pool(BOTH, ROOM)
    checkpoint = kept(pool, 6)
    parked = pool.park(checkpoint)
    lease = pool.resume(checkpoint, 8)
    lease.advance(1)
    again = pool.park(lease.retire())
    assert again.moves == Moves(to_host=True, pages=(PageMove(1, 200),), slots=(SlotMove(1, 600),))
    parked.close()
    assert pool.host_free == 1000 - 400


def test_a_place_that_is_given_back_is_no_twin_of_what_comes_next():
    pool = Pool(BOTH, ROOM)
    first = kept(pool, 6)
    parked = pool.park(first)
    first.close()
    second = kept(pool, 6)
    assert (second.pages, second.slot) == ((0, 1), 1)
    moves = Moves(to_host=True, pages=(PageMove(0, 200, 2),), slots=(SlotMove(1, 600),))
    again = pool.park(second)
    assert again.moves == moves
    again.close()
    assert pool.park(second).moves == moves
    parked.close()


def test_a_waking_that_is_given_up_gives_its_pages_back():
    pool = Pool(BOTH, ROOM)
    checkpoint = kept(pool, 6)
    parked = pool.park(checkpoint)
    checkpoint.close()
    with pool.wake(parked) as waking:
        parked.close()
        assert (pool.pages.free, pool.slots.free, pool.host_free) == (6, 2, 600)
    assert (pool.pages.free, pool.slots.free, pool.host_free) == (8, 3, 1000)
    with pytest.raises(CallerError, match="a waking is used after it was given back"):
        waking.awake()


def test_what_is_awake_is_the_checkpoints_and_no_more_the_wakings():
    pool = Pool(BOTH, ROOM)
    checkpoint = kept(pool, 6)
    parked = pool.park(checkpoint)
    checkpoint.close()
    with pool.wake(parked) as waking:
        awake = waking.awake()
    assert (pool.pages.kept, pool.slots.kept) == (2, 1)
    with pytest.raises(CallerError, match="a waking is used after it was given back"):
        waking.awake()
    awake.close()
    assert pool.pages.free == 8


def test_what_is_parked_no_more_does_not_wake():
    pool = Pool(BOTH, ROOM)
    with pool.park(kept(pool, 6)) as parked:
        pass
    with pytest.raises(CallerError, match="a parked is used after it was given back"):
        pool.wake(parked)


def test_a_full_host_takes_nothing_and_says_so():
    pool = Pool(BOTH, HostRoom(450, page_bytes=90, slot_bytes=150, grain=100))
    one, two = kept(pool, 8), kept(pool, 4)
    parked = pool.park(one)
    assert pool.park(two) == HostFull(300, 450)
    assert (parked.is_open, pool.host_free) == (True, 0)
    assert str(pool.park(two)).endswith("drop what is parked there")
    parked.close()
    assert pool.park(two).moves.pages == (PageMove(2, 0),)
    assert pool.park(one) == HostFull(400, 450)
    assert pool.host_free == 100
    lease = pool.lease(8, two)
    lease.advance(1)
    assert pool.park(lease.retire()) == HostFull(300, 450)
    assert pool.host_free == 100
    assert Pool(BOTH).park(kept(Pool(BOTH), 4)) == HostFull(0, 0)


def test_waking_needs_room_on_the_device():
    pool = Pool(BOTH, ROOM)
    checkpoint = kept(pool, 20)
    parked = pool.park(checkpoint)
    checkpoint.close()
    with pool.lease(16):
        assert pool.wake(parked) == Busy(1, 0)
    assert pool.wake(parked).length == 20


@pytest.mark.parametrize(
    "wrong", [{"nbytes": -1}, {"nbytes": 9, "grain": 0}, {"nbytes": 9, "page_bytes": -1}]
)
def test_a_host_room_that_cannot_be_is_refused(wrong):
    with pytest.raises(CallerError, match="no negative sizes"):
        HostRoom(**wrong)


def test_freed_pages_of_the_host_are_one_range_again():
    pool = Pool(Geometry(pages=50, unit=1, row=50), HostRoom(500, page_bytes=10, grain=10))
    tree = PrefixTree(pool)
    for first in range(5):
        tokens = [first] * 10
        tree.insert(tokens, kept(pool, 10))
        tree.evict().close()
    assert (pool.host_free, tree.parked) == (0, 5)
    while tree.shed():
        pass
    whole = pool.park(kept(pool, 50))
    assert whole.moves.pages == (PageMove(0, 0, 50),)
