"""Memory that goes from pages to slots and back, against chunks of which each byte is known."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from bedstone.errors import CallerError
from bedstone.pool import (
    Arena,
    Arenas,
    Busy,
    Checkpoint,
    ExceedsPool,
    Geometry,
    Lease,
    Pool,
    PrefixTree,
    Remapping,
)
from pool_chunks import Ground, require_statuses

PICK = st.integers(0, 10**6)


def sized(chunk, pages, slots, page_bytes, slot_bytes, spare=0):
    """A pool's shape: each arena as many chunks as its objects need, one of them some more."""
    kinds = [
        tuple(Arena(each, -(-count * each // chunk)) for each in sizes)
        for count, sizes in ((pages, page_bytes), (slots, slot_bytes))
    ]
    kinds[0] = (Arena(page_bytes[0], kinds[0][0].chunks + spare), *kinds[0][1:])
    budget = sum(arena.chunks for kind in kinds for arena in kind)

    def most(first, kind, other, least):
        beside = sum(-(-least * each // chunk) for each in other)
        count = first
        while beside + sum(-(-(count + 1) * each // chunk) for each in kind) <= budget:
            count += 1
        return count

    arenas = Arenas(
        chunk,
        *kinds,
        most_pages=most(pages, page_bytes, slot_bytes, 2),
        most_slots=most(slots, slot_bytes, page_bytes, 1),
    )
    return arenas, Geometry(pages, 2, arenas.most_pages + 2, slots)


shapes = st.builds(
    sized,
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(2, 6),
    st.lists(st.sampled_from([1, 3, 4, 7, 12, 30]), min_size=1, max_size=3),
    st.lists(st.sampled_from([2, 5, 8, 12, 40]), min_size=1, max_size=3),
    st.integers(0, 2),
)


class Exchanged(RuleBasedStateMachine):
    """A remap lands some time after it was planned; nothing of it may be used before."""

    @initialize(shape=shapes)
    def begin(self, shape):
        self.arenas, self.geometry = shape
        self.pool = Pool(self.geometry, arenas=self.arenas)
        self.tree = PrefixTree(self.pool)
        self.ground = Ground(self.arenas, self.geometry)
        self.leases, self.stamp = [], 0

    def gain(self, got, pages, slots):
        if not isinstance(got, Lease):
            self.refused(got, pages, slots)
            return
        self.stamp += 1
        for page in got.pages:
            self.ground.write(0, page, self.stamp)
        self.ground.write(1, got.slot, self.stamp)
        self.leases.append((got, self.stamp))

    def refused(self, denial, pages, slots):
        """What is short is short; what never fits does not fit an empty pool."""
        arenas = self.arenas
        if isinstance(denial, ExceedsPool):
            assert arenas.chunks_for(denial.pages, denial.slots + 1) > arenas.budget
            assert denial.pages >= pages
            return
        assert isinstance(denial, Busy | Remapping), denial
        assert denial.pages == max(0, pages - self.pool.pages.free)
        assert denial.slots == max(0, slots - self.pool.slots.free)
        assert denial.pages or denial.slots
        assert (self.pool.remap is not None) >= isinstance(denial, Remapping)

    @rule(tokens=st.integers(1, 40))
    def lease(self, tokens):
        tokens = min(tokens, self.geometry.limit)
        self.gain(self.pool.lease(tokens), self.geometry.pages_for(tokens), 1)

    @precondition(lambda self: self.leases)
    @rule(pick=PICK, tokens=st.integers(1, 40))
    def extend(self, pick, tokens):
        lease, stamp = self.leases[pick % len(self.leases)]
        had, tokens = len(lease.pages), min(tokens, self.geometry.limit)
        denial = lease.extend(tokens)
        if denial is None:
            for page in lease.pages[had:]:
                self.ground.write(0, page, stamp)
        else:
            self.refused(denial, self.geometry.pages_for(tokens) - had, 0)

    @precondition(lambda self: self.leases)
    @rule(pick=PICK, keep=st.booleans())
    def end(self, pick, keep):
        lease, stamp = self.leases.pop(pick % len(self.leases))
        tokens = lease.room
        if keep:
            lease.advance(tokens - lease.length)
            self.tree.insert([stamp] * tokens, lease.retire())
        else:
            lease.close()

    @precondition(lambda self: self.leases)
    @rule(pick=PICK)
    def checkpoint(self, pick):
        lease, stamp = self.leases[pick % len(self.leases)]
        if lease.length == 0:
            lease.advance(1)
        got = lease.checkpoint()
        if isinstance(got, Checkpoint):
            for slot in got.copies.slots:
                self.ground.write(1, slot.target, stamp)
            for page in got.copies.pages:
                self.ground.write(0, page.target, stamp)
            self.tree.insert([stamp] * lease.length, got)

    @precondition(lambda self: self.tree.resident)
    @rule()
    def evict(self):
        gone = self.tree.evict()
        if gone is not None:
            gone.close()

    @rule(pages=st.integers(0, 9))
    def foresee(self, pages):
        self.pool.foresee(pages)

    @precondition(lambda self: self.pool.remap is not None)
    @rule()
    def land(self):
        self.ground.make(self.pool.remap)
        self.pool.landed()

    @invariant()
    def all_is_as_it_was_written(self):
        if not hasattr(self, "pool"):
            return
        kept = list(self.tree._resident.values())
        pages = {page for lease, _ in self.leases for page in lease.pages}
        slots = {lease.slot for lease, _ in self.leases}
        assert (self.pool.pages.held, self.pool.slots.held) == (len(pages), len(slots))
        pages |= {page for each in kept for page in each.pages}
        slots |= {each.slot for each in kept}
        require_statuses(self.pool, self.ground, (pages, slots))
        for lease, stamp in self.leases:
            for page in lease.pages:
                self.ground.require(0, page, stamp)
            self.ground.require(1, lease.slot, stamp)

    def teardown(self):
        if not hasattr(self, "pool"):
            return
        for lease, _ in self.leases:
            lease.close()
        self.tree.close()
        self.leases = []
        self.an_empty_pool_gives_what_it_ever_can()

    def an_empty_pool_gives_what_it_ever_can(self):
        """Whatever was there before, one who is alone gets all that does not exceed the pool."""
        if self.pool.remap is not None:
            self.land()
        most = self.pool.most_pages(1)
        for pages in {1, most, 1 + most // 2}:
            asked = 0
            while not isinstance(lease := self.pool.lease(2 * pages), Lease):
                assert isinstance(lease, Remapping), lease
                asked += 1
                assert asked == 1
                self.land()
            self.ground.require_there(1, lease.slot)
            lease.close()
        assert isinstance(self.pool.lease(2 * most + 2), ExceedsPool)


TestExchanged = Exchanged.TestCase
TestExchanged.settings = settings(max_examples=60, stateful_step_count=30)
TestExchanged.pytestmark = [pytest.mark.slow]


@given(shapes)
def test_what_is_there_at_first_is_what_geometry_says(shape):
    arenas, geometry = shape
    pool = Pool(geometry, arenas=arenas)
    assert (pool.pages.free, pool.slots.free) == (geometry.pages, geometry.slots - 1)
    assert pool.pages.absent == arenas.most_pages - geometry.pages
    require_statuses(pool, Ground(arenas, geometry), (set(), set()))
    first = [pool.lease(2) for _ in range(min(geometry.pages, geometry.slots - 1))]
    assert [(lease.pages[0], lease.slot) for lease in first] == [
        (n, n + 1) for n in range(len(first))
    ]
    assert pool.remap is None


def test_the_highest_free_pages_go_for_the_lowest_slots():
    arenas, geometry = sized(8, pages=12, slots=2, page_bytes=[4], slot_bytes=[8, 8])
    pool = Pool(geometry, arenas=arenas)
    held = pool.lease(2)
    denial = pool.lease(2)
    assert denial == Remapping(0, 1)
    assert {move.source for move in pool.remap.moves} == {(0, 4), (0, 5)}
    assert {move.target for move in pool.remap.moves} == {(1, 2), (2, 2)}
    assert (pool.pages.leaving, pool.slots.arriving) == (4, 1)
    assert pool.lease(2) == Remapping(0, 1)
    pool.landed()
    lease = pool.lease(2)
    assert (lease.slot, lease.pages) == (2, (1,))
    assert (pool.pages.total, pool.pages.absent) == (8, arenas.most_pages - 8)
    held.close()


def test_a_neighbour_keeps_the_chunk_that_it_shares():
    """Pages of 3 bytes in chunks of 8: the sixth lies in two of them, of which one goes."""
    arenas, geometry = sized(8, pages=8, slots=2, page_bytes=[3], slot_bytes=[8])
    pool = Pool(geometry, arenas=arenas)
    pool.lease(2)
    assert pool.lease(2 * 6) == Busy(0, 1)
    assert pool.lease(2 * 4) == Remapping(0, 1)
    assert [move.source for move in pool.remap.moves] == [(0, 2)]
    assert (pool.pages.leaving, pool.pages.free) == (3, 4)
    pool.landed()
    assert pool.lease(2 * 4).pages == (1, 2, 3, 4)


def test_pages_beside_one_that_is_held_stay():
    """What they lie in would not be free without them."""
    arenas, geometry = sized(8, pages=12, slots=4, page_bytes=[2], slot_bytes=[8])
    pool = Pool(geometry, arenas=arenas)
    pool.lease(6)
    middle = pool.lease(16)
    assert pool.lease(2).pages == (11,)
    middle.advance(2)
    assert middle.retire().pages == (3,)
    assert pool.lease(2) == Remapping(0, 1)
    assert [move.source for move in pool.remap.moves] == [(0, 1)]
    assert (pool.pages.leaving, pool.pages.free) == (4, 3)
    pool.landed()
    assert pool.lease(2).pages == (8,)


def test_what_shares_chunks_that_are_there_arrives_at_once():
    arenas, geometry = sized(64, pages=4, slots=2, page_bytes=[64], slot_bytes=[16])
    pool = Pool(geometry, arenas=arenas)
    one, two = pool.lease(2), pool.lease(2)
    assert isinstance(two, Lease)
    assert two.slot == 2
    assert pool.remap is None
    one.close()


def test_others_in_the_way_are_busy_and_something_that_never_fits_exceeds():
    arenas, geometry = sized(8, pages=4, slots=2, page_bytes=[8], slot_bytes=[8])
    pool = Pool(geometry, arenas=arenas)
    held = pool.lease(2 * 4)
    assert pool.lease(2) == Busy(1, 1)
    assert pool.remap is None
    held.close()
    assert isinstance(pool.lease(2 * 4), Lease)
    assert pool.lease(2 * 5) == ExceedsPool(5, 1, 4, 4)


def test_what_could_be_free_is_what_no_lease_has_and_the_null_line_has_not():
    arenas, geometry = sized(8, pages=4, slots=3, page_bytes=[8], slot_bytes=[8])
    pool = Pool(geometry, arenas=arenas)
    held = pool.lease(2 * 4)
    assert not pool.can_free(Busy(0, 1))
    held.advance(2 * 4)
    kept = held.retire()
    assert pool.can_free(Busy(0, 1))
    assert pool.can_free(Busy(4, 1))
    assert not pool.can_free(Busy(4, 2))
    assert not pool.can_free(Busy(5, 1))
    kept.close()


def test_slots_that_no_memory_is_left_for_beside_their_origins_pages_exceed():
    arenas, geometry = sized(8, pages=2, slots=2, page_bytes=[8], slot_bytes=[8])
    pool = Pool(geometry, arenas=arenas)
    lease = pool.lease(2 * 2)
    lease.advance(2 * 2)
    denial = lease.fork(2 * 2)
    assert isinstance(denial, ExceedsPool)
    assert (denial.pages, denial.slots) == (2, 2)


def test_what_is_wanted_soon_is_planned_for_where_it_is_not_free():
    arenas, geometry = sized(8, pages=4, slots=4, page_bytes=[8], slot_bytes=[8])
    pool = Pool(geometry, arenas=arenas)
    pool.foresee(4)
    assert pool.remap is None
    pool.foresee(5)
    assert pool.pages.arriving == 1
    pool.landed()
    assert pool.pages.free == 5


def test_a_remap_that_nobody_planned_does_not_land():
    arenas, geometry = sized(8, pages=4, slots=2, page_bytes=[8], slot_bytes=[8])
    with pytest.raises(CallerError, match="knows nothing of"):
        Pool(geometry, arenas=arenas).landed()
    with pytest.raises(CallerError, match="knows nothing of"):
        Pool(geometry).landed()
    assert Pool(geometry).remap is None


@pytest.mark.parametrize(
    "broken",
    [
        {"chunk": 0},
        {"pages": ()},
        {"slots": ()},
        {"pages": (Arena(0, 4),)},
    ],
)
def test_arenas_are_of_both_kinds_and_some_size(broken):
    fields = {"chunk": 8, "pages": (Arena(8, 4),), "slots": (Arena(8, 2),)} | broken
    with pytest.raises(CallerError, match="expected pages and slots"):
        Arenas(**fields, most_pages=4, most_slots=2)


def test_memory_that_objects_need_is_there():
    arenas = Arenas(8, (Arena(8, 3),), (Arena(8, 2),), 4, 2)
    with pytest.raises(CallerError, match="arena 0 has 3 chunks: expected 4 at least"):
        Pool(Geometry(4, 2, 4, 2), arenas=arenas)


def test_a_refusal_is_not_looked_into_again_until_more_is_free(monkeypatch):
    arenas, geometry = sized(8, pages=16, slots=4, page_bytes=[2], slot_bytes=[8])
    pool = Pool(geometry, arenas=arenas)
    held = [pool.lease(2) for _ in range(3)]
    plans = []
    plan = pool._exchange._plan
    monkeypatch.setattr(pool._exchange, "_plan", lambda need: plans.append(need) or plan(need))
    rest = pool.lease(2)
    assert isinstance(rest, Remapping)
    pool.landed()
    assert isinstance(pool.lease(2), Lease)
    before = len(plans)
    found = [pool.lease(2 * 9) for _ in range(5)]
    assert len(set(map(type, found))) == 1
    assert len(plans) <= before + 1
    held[0].close()
