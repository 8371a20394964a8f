"""Leases: what is given, in which order, and what is refused."""

import pytest

from bedstone.errors import CallerError
from bedstone.pool import (
    Busy,
    Copies,
    ExceedsPool,
    ExceedsRow,
    Geometry,
    Lease,
    PageCopy,
    Pool,
    SlotClear,
    SlotCopy,
)

PAGED = Geometry(pages=8, unit=4, row=6)
BOTH = Geometry(pages=8, unit=4, row=6, slots=4)


def begun(pool: Pool, tokens: int, room: int | None = None):
    lease = pool.lease(room or tokens)
    lease.advance(tokens)
    return lease


def test_the_lowest_pages_and_slot_are_given_first():
    pool = Pool(BOTH)
    first, second = pool.lease(10), pool.lease(4)
    assert (first.pages, first.slot) == ((0, 1, 2), 1)
    assert (second.pages, second.slot) == ((3,), 2)
    first.close()
    assert pool.lease(5).pages == (0, 1)


def test_the_null_line_is_never_leased():
    pool = Pool(Geometry(slots=4))
    leases = [pool.lease(9) for _ in range(3)]
    assert [lease.slot for lease in leases] == [1, 2, 3]
    assert pool.lease(9) == Busy(0, 1)
    assert [lease.pages for lease in leases] == [()] * 3


def test_a_slot_is_cleared_where_a_sequence_begins_and_not_where_it_goes_on():
    pool = Pool(BOTH)
    lease = begun(pool, 4)
    assert lease.copies == Copies(slots=(SlotClear(1),))
    assert pool.lease(8, lease.retire()).copies == Copies(slots=(SlotCopy(1, 2),))


def test_several_grow_by_a_page_each_or_none_does():
    pool = Pool(PAGED)
    some = [pool.lease(1), pool.lease(20)]
    assert Lease.grow(some) == (6, 7)
    assert [lease.pages for lease in some] == [(0, 6), (1, 2, 3, 4, 5, 7)]
    before = pool.pages
    assert Lease.grow(some) == ExceedsRow(28, 24)
    assert Lease.grow(some[:1]) == Busy(1, 0)
    assert Lease.grow([]) == ()
    assert ([len(lease.pages) for lease in some], pool.pages) == ([2, 6], before)


def test_a_denial_takes_nothing_and_says_what_would_help():
    pool = Pool(BOTH)
    held = [pool.lease(20), pool.lease(4)]
    before = pool.pages, pool.slots
    denials = [pool.lease(25), pool.lease(12), held[0].extend(24 + 1), held[1].extend(24)]
    assert denials == [ExceedsRow(25, 24), Busy(1, 0), ExceedsRow(25, 24), Busy(3, 0)]
    assert (pool.pages, pool.slots) == before
    assert str(denials[0]) == "25 tokens are more than the 24 of a row: ask for fewer"
    assert "evict prefixes or wait" in str(denials[1])
    small = Pool(Geometry(pages=2, unit=4, row=6, slots=2))
    assert small.lease(9) == ExceedsPool(3, 1, 2, 1)
    assert str(small.lease(9)).endswith("ask for fewer or reserve more")


def test_a_denial_seals_nothing():
    pool = Pool(PAGED)
    lease, others = begun(pool, 6), pool.lease(24)
    assert lease.checkpoint() == Busy(1, 0)
    assert lease.fork(8) == Busy(1, 0)
    lease.rewind(0)
    lease.advance(6)
    others.close()
    assert lease.checkpoint().length == 6
    with pytest.raises(CallerError, match="sealed"):
        lease.rewind(3)


def test_what_can_only_be_held_beside_its_origin_may_never_fit():
    with begun(Pool(Geometry(pages=2, unit=4, row=2)), 6) as lease:
        assert lease.checkpoint() == ExceedsPool(3, 0, 2, 0)
        assert lease.fork(8) == ExceedsPool(3, 0, 2, 0)
    with begun(Pool(Geometry(slots=2)), 6) as lease:
        assert lease.checkpoint() == ExceedsPool(0, 2, 0, 1)


def test_a_row_is_padded_with_its_first_entry():
    pool = Pool(PAGED)
    pool.lease(4)
    lease = pool.lease(6)
    assert lease.row(5) == (1, 2, 1, 1, 1)
    with pytest.raises(CallerError, match="a row of 1 pages does not hold 2"):
        lease.row(1)
    with pytest.raises(CallerError, match="does not hold 0"):
        Pool(Geometry(slots=2)).lease(1).row(4)


def test_nothing_is_written_below_a_prefix_or_into_a_sealed_page():
    pool = Pool(PAGED)
    lease = begun(pool, 10, 16)
    lease.require_writable(0, 16)
    checkpoint = lease.checkpoint()
    assert lease.floor == 8
    lease.require_writable(8, 8)
    with pytest.raises(CallerError, match="a write at position 7: expected 8 to 10"):
        lease.require_writable(7, 1)
    restored = pool.lease(12, checkpoint)
    with pytest.raises(CallerError, match="a write at position 9: expected 10 to 10"):
        restored.require_writable(9, 1)
    with pytest.raises(CallerError, match="a write at position 11"):
        restored.require_writable(11, 1)
    with pytest.raises(CallerError, match="positions 10 to 13: the pages hold 12"):
        restored.require_writable(10, 3)
    with pytest.raises(CallerError, match="positions"):
        restored.advance(-1)


def test_a_sequence_with_a_slot_is_written_where_it_ends_only():
    lease = begun(Pool(BOTH), 6, 12)
    lease.require_writable(6, 6)
    with pytest.raises(CallerError, match="a write at position 5: expected 6 to 6"):
        lease.require_writable(5, 1)
    with pytest.raises(CallerError, match="expected 6 to 6"):
        lease.rewind(4)


def test_tokens_that_were_not_wanted_are_written_over():
    lease = begun(Pool(PAGED), 10, 16)
    lease.rewind(7)
    assert lease.retire().length == 7


def test_a_checkpoint_of_a_live_lease_shares_its_whole_pages():
    pool = Pool(BOTH)
    lease = begun(pool, 10, 12)
    checkpoint = lease.checkpoint()
    assert (checkpoint.pages, checkpoint.slot) == ((0, 1, 3), 2)
    assert checkpoint.copies == Copies((PageCopy(2, 3, 2),), (SlotCopy(1, 2),))
    lease.close()
    assert (pool.pages.free, pool.pages.kept, pool.slots.kept) == (5, 3, 1)


def test_retiring_copies_nothing_and_frees_what_is_beyond():
    pool = Pool(BOTH)
    lease = begun(pool, 6, 20)
    checkpoint = lease.retire()
    assert (checkpoint.pages, checkpoint.slot, checkpoint.copies) == ((0, 1), 1, Copies())
    assert (pool.pages.free, pool.pages.held, pool.pages.kept) == (6, 0, 2)
    lease.close()
    assert pool.pages.kept == 2
    with pytest.raises(CallerError, match="a lease is used after it was given back"):
        lease.pages  # noqa: B018
    with pytest.raises(CallerError, match="0 tokens of a state of 0"):
        pool.lease(4).retire()


def test_a_state_with_a_slot_is_gone_on_with_at_its_exact_length_only():
    pool = Pool(BOTH)
    checkpoint = begun(pool, 10).retire()
    with pytest.raises(CallerError, match=r"8 tokens of a state of 10: expected 10$"):
        pool.lease(12, checkpoint, 8)
    paged = Pool(PAGED)
    checkpoint = begun(paged, 10).retire()
    with paged.lease(12, checkpoint, 8) as lease:
        assert (lease.pages, lease.copies, lease.length) == ((0, 1, 3), Copies(), 8)
    with pytest.raises(CallerError, match="expected 10, or fewer in whole pages of 4"):
        paged.lease(12, checkpoint, 9)
    with pytest.raises(CallerError, match="4 tokens of no prefix"):
        paged.lease(9, length=4)
    with pytest.raises(CallerError, match="a lease of 9 tokens that goes on from 10"):
        paged.lease(9, checkpoint)


def test_forks_part_where_their_origin_is():
    pool = Pool(BOTH)
    lease = begun(pool, 10, 12)
    one, two = lease.fork(12), lease.fork(16)
    assert (one.pages, two.pages) == ((0, 1, 3), (0, 1, 4, 5))
    assert [each.copies.pages for each in (one, two)] == [
        (PageCopy(2, 3, 2),),
        (PageCopy(2, 4, 2),),
    ]
    assert (lease.slot, one.slot, two.slot) == (1, 2, 3)
    assert (lease.floor, one.floor) == (8, 10)
    lease.close()
    one.close()
    assert pool.pages.held == 4


def test_a_checkpoint_becomes_a_lease_without_a_copy():
    pool = Pool(BOTH)
    checkpoint = begun(pool, 10).retire()
    lease = pool.resume(checkpoint, 16)
    assert (lease.pages, lease.slot, lease.copies) == ((0, 1, 2, 3), 1, Copies())
    assert (lease.length, lease.floor, checkpoint.is_open) == (10, 10, False)
    checkpoint.close()
    assert (pool.pages.held, pool.pages.kept) == (4, 0)


def test_checkpoints_one_on_the_other_keep_each_page_once():
    pool = Pool(Geometry(pages=2_001, unit=1, row=2_001))
    lease = pool.lease(1)
    kept = None
    for length in range(1, 2_001, 50):
        assert lease.extend(length) is None
        lease.advance(length - lease.length)
        if kept is not None:
            kept.close()
        kept = lease.checkpoint()
        lease = pool.resume(lease.retire(), length + 1)
    lease.close()
    assert pool.pages.kept == 1951
    kept.close()
    assert pool.pages.free == 2_001


def test_what_is_held_is_given_back_by_a_with_block_also_after_an_error():
    pool = Pool(BOTH)
    with pytest.raises(KeyError), pool.lease(4), pool.lease(4):
        raise KeyError
    assert (pool.pages.free, pool.slots.free) == (8, 3)
