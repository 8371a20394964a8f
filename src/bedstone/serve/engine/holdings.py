"""What sequences hold of a session's states, and the prefixes that are kept for others.

The pool says what is whose; this makes the copies that it asks for.
"""

from collections.abc import Sequence

from bedstone.pool import (
    Busy,
    Checkpoint,
    Copies,
    Denial,
    Geometry,
    Hit,
    HostRoom,
    Lease,
    Pool,
    PrefixTree,
    Remapping,
    SlotCopy,
)
from bedstone.runtime.executor import Executor
from bedstone.serve.engine.abilities import Abilities
from bedstone.serve.engine.remapper import Remapper, arenas_of
from bedstone.serve.engine.tier import Coming, Tier

_SPARE_SLOTS = 2


class Holdings:
    """Leases of a session's states. `unit` tokens are a page.

    `reuse` keeps the prefixes of what was computed, as long as nobody wants the room; `host_bytes`
    of host memory take those that had to make way.
    """

    def __init__(
        self, session: Executor, abilities: Abilities, *, reuse: bool, host_bytes: int
    ) -> None:
        capacity, protocol = session.capacity, abilities.protocol
        states = session.manifest.states.items()
        self.unit = protocol.page_tokens or capacity.unit
        self._session = session
        self._paged = tuple((n, s.bytes_per_token) for n, s in states if s.bytes_per_token)
        self._own = tuple((n, s.bytes_per_seq) for n, s in states if s.bytes_per_seq)
        room = self._room = self._host_room(host_bytes)
        arenas = arenas_of(session, self.unit)
        self._pool = Pool(self._geometry(abilities), room, arenas)
        self._remapper: Remapper | None = None
        if arenas is not None and session.remaps is not None:
            names = tuple(name for name, _ in (*self._paged, *self._own))
            self._remapper = Remapper(self._pool, arenas, session.remaps, names)
        self._tree = PrefixTree(self._pool) if reuse else None
        self._tier: Tier | None = None
        if room is not None and self._tree is not None:
            pages = tuple((name, self.unit * each) for name, each in self._paged)
            reserve = session.reserve(host_bytes)
            self._tier = Tier(reserve, room, pages, self._own, self._tree.insert)
        self.evicted = 0
        self.parked = 0
        self.woken = 0
        pad = self._pool.lease(1) if abilities.pads else None
        self._pad = pad if isinstance(pad, Lease) else None

    @property
    def reuses(self) -> bool:
        """Whether prefixes are kept."""
        return self._tree is not None

    @property
    def geometry(self) -> Geometry:
        """The pages and slots there are."""
        return self._pool.geometry

    @property
    def pad_page(self) -> int:
        """The page that rows of nobody write to."""
        return self._pad.pages[0] if self._pad and self._pad.pages else 0

    @property
    def pages(self) -> tuple[int, int, int]:
        """How many pages there are for sequences, how many of them they hold, and prefixes."""
        tally, pad = self._pool.pages, len(self._pad.pages) if self._pad else 0
        return tally.total - pad, tally.held - pad, tally.kept

    def longest(self, context: int) -> int:
        """How long a sequence of `context` tokens at most can be that runs alone."""
        pad = self._pad.pages if self._pad else ()
        pages = self._pool.most_pages(1 + bool(self._pad)) - len(pad)
        return min(context, pages * self.unit) if self.geometry.pages else context

    @property
    def remaps(self) -> int:
        """How often memory went from pages to slots or back."""
        return self._remapper.made if self._remapper else 0

    @property
    def slots(self) -> tuple[int, int]:
        """How many slots there are for states of a sequence's own, and how many are held."""
        tally = self._pool.slots
        return (tally.total, tally.held) if self.geometry.per_sequence else (0, 0)

    @property
    def prefixes(self) -> tuple[int, int]:
        """How many prefixes are kept, on the device and in the host's memory."""
        return (self._tree.resident, self._tree.parked) if self._tree else (0, 0)

    @property
    def host_bytes(self) -> int:
        """How much of the host's memory parked prefixes take."""
        room = self._room
        return room.nbytes // room.grain * room.grain - self._pool.host_free if room else 0

    @property
    def free_pages(self) -> int:
        """How many pages no sequence holds, or could be had for what none holds."""
        if self._remapper is not None:
            return self._remapper.unheld_bytes // self._remapper.page_bytes
        return self._pool.pages.total - self._pool.pages.held

    @property
    def free_slots(self) -> int | None:
        """How many slots no sequence holds; None where they need none, or take pages for it."""
        tally = self._pool.slots
        limited = self.geometry.per_sequence and self._remapper is None
        return tally.total - tally.held if limited else None

    def pages_for(self, tokens: int) -> int:
        """How many pages a sequence of so many tokens takes, and what its slot is worth in such."""
        slot = self._remapper.slot_bytes // self._remapper.page_bytes if self._remapper else 0
        return self.geometry.pages_for(tokens) + slot

    def landed(self) -> bool:
        """Whether something that was on its way has arrived since this was last asked."""
        moved = self._go_on(wait=False)
        return (self._remapper is not None and self._remapper.landed()) or moved

    def begin(
        self, tokens: Sequence[int], room: int, *, wakes: bool, wait: bool
    ) -> tuple[Lease, int] | Denial | None:
        """A lease of `room` tokens for a sequence of `tokens`, and how many of them it has.

        What is found on the host comes back first, if it `wakes`; None while it is on its way: ask
        again. `wait` for whatever is on its way: nobody else runs meanwhile.
        """
        while True:
            hit = self._tree.lookup(tokens) if self._tree else None
            kept = self._awake(tokens, hit, wakes=wakes) if hit else None
            if isinstance(kept, Coming):
                # what has to make way again before it is of use would be woken for ever
                wakes = False
                if not self._go_on(wait=wait):
                    return None
                continue
            lease = self._lease(kept, hit.length if hit else 0, room)
            if isinstance(lease, Lease):
                self._copy(lease.copies)
                return lease, lease.length
            # what was evicted may be what was found: looked up again
            if not self._helped(lease, wait=wait):
                return lease

    def extend(self, lease: Lease, room: int) -> bool:
        """Have room for so many tokens in all; False: others have it."""
        while True:
            denial = lease.extend(room)
            if denial is None:
                return True
            if not self._helped(denial):
                return False

    def make_idle(self, pages: int) -> bool:
        """Whether so many pages hold nothing at all, once memory or prefixes have made way.

        Nothing is waited for: what has to move first is on its way then.
        """
        while self._pool.pages.free < pages:
            self._pool.foresee(pages)
            missing = pages - self._pool.pages.free
            if self._remapper is not None and self._pool.remap is not None:
                helped = self._remapper.go_on(wait=False)
            else:
                helped = missing <= 0 or self._evict(Busy(missing, 0), wait=False)
            if not helped:
                return False
        return True

    def grow(self, leases: Sequence[Lease]) -> tuple[int, ...]:
        """A page more for each of some leases, of which so many hold nothing at all."""
        match Lease.grow(leases):
            case tuple(pages):
                return pages
            case denial:
                raise AssertionError(f"idle pages are not to be had: {denial}")

    def keep(self, lease: Lease, tokens: Sequence[int]) -> None:
        """Keep the state of so many tokens for others; without slots, of the whole pages."""
        if self._tree is None:
            return
        whole = len(tokens) if self.geometry.per_sequence else self.geometry.whole(len(tokens))
        lease.advance(len(tokens) - lease.length)
        if not whole:
            return
        while not isinstance(kept := lease.checkpoint(whole), Checkpoint):
            # steps are not held up for what may never be asked for
            if not self._helped(kept, wait=False):
                return
        self._copy(kept.copies)
        self._tree.insert(tokens[:whole], kept)

    def retire(self, lease: Lease, tokens: Sequence[int]) -> None:
        """End a lease and keep the state of its tokens for others."""
        if self._tree is None or not tokens:
            lease.close()
            return
        lease.advance(len(tokens) - lease.length)
        self._tree.insert(tokens, lease.retire())

    def close(self) -> None:
        """Forget what is kept, once nothing is on its way."""
        if self._remapper is not None:
            self._remapper.go_on(wait=True)
        if self._tier is not None:
            self._tier.close()
            self._tier = None
        if self._tree is not None:
            self._tree.close()

    # --- how ---

    def _geometry(self, abilities: Abilities) -> Geometry:
        capacity, protocol = self._session.capacity, abilities.protocol
        pages = capacity.tokens // self.unit if protocol.page_tables else 0
        row = min((t.tokens * t.pages // self.unit for t in protocol.page_tables), default=0)
        slots = capacity.slots if self._own else 0
        # a model without states has nothing to hold: so many at once
        slots = slots if pages or slots else abilities.sequences + _SPARE_SLOTS
        return Geometry(pages, self.unit, row, slots)

    def _host_room(self, nbytes: int) -> HostRoom | None:
        if not nbytes:
            return None
        page = self.unit * sum(each for _, each in self._paged)
        return HostRoom(nbytes, page, sum(each for _, each in self._own))

    def _lease(self, kept: Checkpoint | Denial | None, length: int, room: int) -> Lease | Denial:
        if kept is None:
            return self._pool.lease(room)
        if isinstance(kept, Checkpoint):
            return self._pool.lease(room, kept, length)
        return kept

    def _awake(
        self, tokens: Sequence[int], hit: Hit, *, wakes: bool
    ) -> Checkpoint | Denial | Coming | None:
        """What was found, on the device; `Coming` is on its way there, None stays on the host."""
        kept, tier = hit.kept, self._tier
        if isinstance(kept, Checkpoint):
            return kept
        coming = tier.coming(kept) if tier else None
        if coming is not None or tier is None or not wakes:
            return coming
        waking = self._pool.wake(kept, hit.length)
        if isinstance(waking, Denial):
            return waking
        coming = Coming(kept, waking, tokens[: hit.length])
        tier.fetch(coming)
        self.woken += 1
        return coming

    def _helped(self, denial: Denial, *, wait: bool = True) -> bool:
        """Whether it makes sense to ask again: memory has arrived, or a prefix was given up."""
        if isinstance(denial, Remapping):
            return self._remapper is not None and self._remapper.go_on(wait=wait)
        return isinstance(denial, Busy) and self._evict(denial, wait=wait)

    def _evict(self, missing: Busy, *, wait: bool) -> bool:
        """Give up as many prefixes as are missed, if they have to be on the host first; else one.

        Whether one is gone.
        """
        while not self._leaves(missing):
            evicted = self._tree.evict() if self._tree else None
            if evicted is None:
                break
            self.evicted += 1
            self.parked += evicted.parked
            if self._tier is None or not evicted.moves:
                evicted.close()
                return True
            self._tier.send(evicted)
        return self._go_on(wait=wait)

    def _go_on(self, *, wait: bool) -> bool:
        """Whether something that was on its way to the host, or back, is there."""
        return self._tier is not None and self._tier.go_on(wait=wait)

    def _leaves(self, missing: Busy) -> bool:
        """Whether what is on its way to the host has as much as is missing."""
        if self._tier is None:
            return False
        pages, slots = self._tier.leaving
        return pages >= missing.pages and slots >= missing.slots

    def _copy(self, copies: Copies) -> None:
        for page in copies.pages:
            for name, each in self._paged:
                size = self.unit * each
                target, source = page.target * size, page.source * size
                self._session.copy(name, target, source, page.tokens * each)
        for slot in copies.slots:
            for name, each in self._own:
                if isinstance(slot, SlotCopy):
                    size = slot.count * each
                    self._session.copy(name, slot.target * each, slot.source * each, size)
                else:
                    self._session.clear(name, slot.target * each, slot.count * each)
