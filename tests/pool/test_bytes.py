"""Everything a pool does, in any order, against memory of which each position says what it is."""

import pytest
from hypothesis import settings
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
    Busy,
    Checkpoint,
    ExceedsPool,
    ExceedsRow,
    Geometry,
    HostFull,
    HostRoom,
    Lease,
    Parked,
    Pool,
    PrefixTree,
    Waking,
)
from pool_bytes import Memory

pytestmark = pytest.mark.slow

GEOMETRIES = (
    Geometry(pages=10, unit=4, row=6),
    Geometry(pages=10, unit=4, row=6, slots=6),
    Geometry(pages=4, unit=2, row=9, slots=3),
    Geometry(pages=6, unit=1, row=6, slots=2),
    Geometry(slots=5),
)
ROOMS = (None, HostRoom(700, page_bytes=50, slot_bytes=90, grain=40), HostRoom(4000, 50, 30, 40))
TOKENS = st.lists(st.integers(0, 1), max_size=9).map(tuple)
PICK = st.integers(0, 10**6)


class Everything(RuleBasedStateMachine):
    """Transfers are made some time after they were returned, in order; copies at once."""

    @initialize(geometry=st.sampled_from(GEOMETRIES), room=st.sampled_from(ROOMS))
    def begin(self, geometry, room):
        self.geometry = geometry
        self.pool = Pool(geometry, room)
        self.tree = PrefixTree(self.pool)
        self.memory = Memory(geometry, room)
        self.leases, self.checkpoints, self.parked = [], [], []
        self.transfers, self.seen = [], [()]

    def some(self, held, pick):
        return held[pick % len(held)]

    def shared(self, length):
        """How many whole pages that many tokens fill."""
        return length // self.geometry.unit if self.geometry.pages else 0

    def judge(self, denial, fresh, in_all, slots=None):
        """A denial says how much is missing of what is fresh, or that all never fits at once."""
        slots = int(self.geometry.per_sequence) if slots is None else slots
        if isinstance(denial, Busy):
            free = self.pool.pages.free, self.pool.slots.free
            assert denial == Busy(max(0, fresh - free[0]), max(0, slots - free[1]))
            assert denial.pages or denial.slots
        else:
            assert isinstance(denial, ExceedsPool)
            assert (denial.pages, denial.pages_total) == (in_all, self.geometry.pages)
            assert in_all > self.geometry.pages or denial.slots > max(0, self.geometry.slots - 1)

    def gain(self, got, tokens, room, beside=0):
        """A lease of `room` tokens is held from now on, or the denial is right."""
        if isinstance(got, Lease):
            self.memory.make(got.copies)
            self.memory.require(got, tokens)
            self.leases.append((got, tokens))
        else:
            pages = self.geometry.pages_for(room)
            fresh = pages - self.shared(len(tokens))
            self.judge(got, fresh, (fresh if beside else pages) + beside)

    @rule(room=st.integers(1, 26))
    def lease_any(self, room):
        got = self.pool.lease(room)
        if self.geometry.limit is not None and room > self.geometry.limit:
            assert got == ExceedsRow(room, self.geometry.limit)
        else:
            self.gain(got, (), room)

    @rule(tokens=TOKENS.filter(len), spare=st.integers(0, 3))
    def lease(self, tokens, spare):
        """A sequence that has begun, as most have."""
        tokens = tokens[: self.geometry.limit]
        room = min(len(tokens) + spare, self.geometry.limit or 99)
        before = len(self.leases)
        self.gain(self.pool.lease(room), (), room)
        if len(self.leases) > before:
            self.write(before, tokens)

    @precondition(lambda self: self.leases)
    @rule(pick=PICK, more=TOKENS)
    def write(self, pick, more):
        lease, tokens = self.some(self.leases, pick)
        if lease.room is not None and len(tokens + more) > lease.room:
            with pytest.raises(CallerError):
                lease.advance(len(more))
            return
        self.memory.write(lease, tokens, more)
        self.leases[pick % len(self.leases)] = (lease, tokens + more)

    @precondition(lambda self: self.leases)
    @rule(pick=PICK, room=st.integers(1, 24))
    def extend(self, pick, room):
        lease, _ = self.some(self.leases, pick)
        before = lease.pages
        denial = lease.extend(room)
        assert lease.pages[: len(before)] == before
        if denial is None:
            assert lease.room is None or lease.room >= room
        else:
            assert lease.pages == before
            if not isinstance(denial, ExceedsRow):
                pages = self.geometry.pages_for(room)
                self.judge(denial, pages - len(before), pages, slots=0)

    @precondition(lambda self: self.leases and self.geometry.pages)
    @rule(first=PICK, count=st.integers(0, 4))
    def grow(self, first, count):
        start = first % len(self.leases)
        some = [lease for lease, _ in self.leases[start : start + count]]
        before = [lease.pages for lease in some]
        got = Lease.grow(some)
        if isinstance(got, tuple):
            assert [lease.pages for lease in some] == [
                (*had, page) for had, page in zip(before, got, strict=True)
            ]
        else:
            assert [lease.pages for lease in some] == before
            if not isinstance(got, ExceedsRow):
                self.judge(got, len(some), max(map(len, before)) + 1, slots=0)

    @precondition(lambda self: self.leases)
    @rule(pick=PICK, length=st.integers(0, 24))
    def rewind(self, pick, length):
        lease, tokens = self.some(self.leases, pick)
        lowest = lease.length if self.geometry.per_sequence else lease.floor
        if lowest <= length <= lease.length:
            lease.rewind(length)
            self.leases[pick % len(self.leases)] = (lease, tokens[:length])
        else:
            with pytest.raises(CallerError):
                lease.rewind(length)

    @precondition(lambda self: self.leases)
    @rule(pick=PICK, length=st.none() | st.integers(0, 24))
    def checkpoint(self, pick, length):
        lease, tokens = self.some(self.leases, pick)
        at = len(tokens) if length is None else length
        if not self.geometry.reusable(at, len(tokens)):
            with pytest.raises(CallerError):
                lease.checkpoint(length)
            return
        got = lease.checkpoint(length)
        if isinstance(got, Checkpoint):
            self.memory.make(got.copies)
            self.checkpoints.append((got, tokens[:at]))
        else:
            partial = self.geometry.pages_for(at) - self.shared(at)
            self.judge(got, partial, partial + len(lease.pages))

    @precondition(lambda self: self.leases)
    @rule(pick=PICK, more=st.integers(0, 8))
    def fork(self, pick, more):
        lease, tokens = self.some(self.leases, pick)
        room = len(tokens) + more
        if not tokens or (self.geometry.limit or room) < room:
            return
        got = lease.fork(room)
        self.gain(got, tokens, room, len(lease.pages))

    @precondition(lambda self: self.leases)
    @rule(pick=PICK, into_tree=st.booleans())
    def retire(self, pick, into_tree):
        lease, tokens = self.leases.pop(pick % len(self.leases))
        if not tokens:
            with pytest.raises(CallerError):
                lease.retire()
            lease.close()
            return
        checkpoint = lease.retire()
        assert not checkpoint.copies
        if into_tree:
            self.tree.insert(tokens, checkpoint)
            self.seen.append(tokens)
        else:
            self.checkpoints.append((checkpoint, tokens))

    @precondition(lambda self: self.checkpoints)
    @rule(pick=PICK, more=st.integers(0, 8), back=st.integers(0, 8))
    def restore(self, pick, more, back):
        checkpoint, tokens = self.some(self.checkpoints, pick)
        at = len(tokens) - back
        if not self.geometry.reusable(at, len(tokens)):
            with pytest.raises(CallerError):
                self.pool.lease(len(tokens) + more, checkpoint, at)
            return
        room = min(at + more, self.geometry.limit or at + more)
        got = self.pool.lease(room, checkpoint, at)
        self.gain(got, tokens[:at], room)

    @precondition(lambda self: self.checkpoints)
    @rule(pick=PICK, more=st.integers(0, 8))
    def resume(self, pick, more):
        checkpoint, tokens = self.some(self.checkpoints, pick)
        room = min(len(tokens) + more, self.geometry.limit or len(tokens) + more)
        pages = self.geometry.pages_for(room)
        fresh = pages - len(checkpoint.pages)
        got = self.pool.resume(checkpoint, room)
        if isinstance(got, Lease):
            del self.checkpoints[pick % len(self.checkpoints)]
            self.leases.append((got, tokens))
            assert not got.copies
        else:
            self.judge(got, fresh, pages, slots=0)

    @precondition(lambda self: self.checkpoints)
    @rule(pick=PICK)
    def park(self, pick):
        checkpoint, tokens = self.some(self.checkpoints, pick)
        got = self.pool.park(checkpoint)
        if isinstance(got, Parked):
            del self.checkpoints[pick % len(self.checkpoints)]
            self.parked.append((got, tokens))
            self.transfers.append((got.moves, checkpoint, None))
        else:
            assert isinstance(got, HostFull)
            assert got.nbytes > self.pool.host_free - 2 * 90 or not self.memory.room

    @precondition(lambda self: self.parked)
    @rule(pick=PICK, back=st.integers(0, 8))
    def wake(self, pick, back):
        parked, tokens = self.some(self.parked, pick)
        at = len(tokens) - back
        if not self.geometry.reusable(at, len(tokens)):
            at = len(tokens)
        got = self.pool.wake(parked, at)
        if isinstance(got, Waking):
            self.transfers.append((got.moves, got, tokens[:at]))
        else:
            assert isinstance(got, Busy)
            assert got.pages or got.slots

    @precondition(lambda self: self.transfers)
    @rule(wanted=st.booleans(), into_tree=st.booleans())
    def transfer(self, wanted, into_tree):
        """The first of the transfers is over."""
        moves, held, tokens = self.transfers.pop(0)
        self.memory.move(moves)
        if tokens is None or not wanted:
            held.close()
        elif into_tree:
            self.tree.insert(tokens, held.awake())
        else:
            self.checkpoints.append((held.awake(), tokens))

    @precondition(lambda self: self.tree.resident)
    @rule()
    def evict(self):
        gone = self.tree.evict()
        if gone is None:
            assert all(each.in_use for each in self.tree._resident.values())
        else:
            self.transfers.append((gone.moves, gone, None))

    @precondition(lambda self: self.tree.parked)
    @rule()
    def shed(self):
        before = self.tree.parked
        assert self.tree.shed()
        assert self.tree.parked == before - 1

    @precondition(lambda self: self.tree.resident or self.tree.parked)
    @rule(pick=PICK, prompt=TOKENS, tail=TOKENS, more=st.integers(0, 4))
    def look_up(self, pick, prompt, tail, more):
        prompt = self.some(self.seen, pick)[: len(prompt) * 2] + tail
        hit = self.tree.lookup(prompt)
        if hit is None:
            return
        assert 0 < hit.length < len(prompt)
        if isinstance(hit.kept, Parked):
            got = self.pool.wake(hit.kept, hit.length)
            if not isinstance(got, Busy):
                self.transfers.append((got.moves, got, prompt[: hit.length]))
            return
        room = min(len(prompt) + more, self.geometry.limit or len(prompt) + more)
        self.gain(self.pool.lease(room, hit.kept, hit.length), prompt[: hit.length], room)

    @rule(pick=PICK, kind=st.sampled_from(["leases", "checkpoints", "parked"]))
    def close(self, pick, kind):
        held = getattr(self, kind)
        if held:
            one, _ = held.pop(pick % len(held))
            one.close()
            one.close()

    @invariant()
    def everything_reads_as_it_should(self):
        if not hasattr(self, "pool"):
            return
        self.memory.poison(*self.recount())
        for held, tokens in self.leases + self.checkpoints:
            self.memory.require(held, tokens)
        if not self.transfers:
            for parked, tokens in self.parked:
                self.memory.require_parked(parked, tokens)

    def recount(self):
        """What is in use, found from all that is held; the tallies say the same."""
        leased = [lease for lease, _ in self.leases]
        waking = [held for _, held, tokens in self.transfers if tokens is not None]
        leaving = [
            getattr(held, "checkpoint", held)
            for _, held, tokens in self.transfers
            if tokens is None
        ]
        resident = list(self.tree._resident.values())
        kept = [checkpoint for checkpoint, _ in self.checkpoints] + leaving + resident
        kept += [each._piece for each in waking]
        on_host = [parked for parked, _ in self.parked] + list(self.tree._parked.values())
        on_host += [each._image for each in waking]
        pages = {page for lease in leased for page in lease.pages}
        slots = {lease.slot for lease in leased} - {0}
        assert (self.pool.pages.held, self.pool.slots.held) == (len(pages), len(slots))
        pages |= {page for each in kept for page in each.pages}
        slots |= {each.slot for each in kept} - {0}
        for tally, used in ((self.pool.pages, pages), (self.pool.slots, slots)):
            assert tally.total - tally.free == len(used)
            assert tally.kept == len(used) - tally.held
        offsets = {at for parked in on_host for at in parked.place.pages}
        high = {parked.place.slot for parked in on_host} - {None}
        if room := self.memory.room:
            taken = len(offsets) * room.page_stride + len(high) * room.slot_stride
            whole = room.nbytes // room.grain * room.grain
            assert self.pool.host_free == whole - taken
        return pages, slots, offsets | high

    def teardown(self):
        if not hasattr(self, "pool"):
            return
        for _, held, _ in self.transfers:
            held.close()
        for held, _ in self.leases + self.checkpoints + self.parked:
            held.close()
        self.tree.close()
        self.transfers, self.leases, self.checkpoints, self.parked = [], [], [], []
        assert self.recount() == (set(), set(), set())
        assert not self.tree._radix._root.children


TestEverything = Everything.TestCase
TestEverything.settings = settings(max_examples=300, stateful_step_count=50)
