"""What a running sequence holds: the only writer of its pages and its slot."""

from collections.abc import Sequence

from bedstone.errors import CallerError
from bedstone.pool.checkpoint import Checkpoint, require_reusable
from bedstone.pool.copies import NO_COPIES, Copies
from bedstone.pool.denial import Denial
from bedstone.pool.store import Piece, Resident, Store


class Lease(Resident):
    """Pages and a slot of one sequence of `length` tokens so far.

    `copies` are to be made before its first step. Nothing below `floor` may be written: it came
    from a prefix, or a checkpoint has it too.
    """

    __slots__ = ("floor",)

    def __init__(
        self, store: Store, piece: Piece, length: int = 0, copies: Copies = NO_COPIES
    ) -> None:
        super().__init__(store, piece, length, copies)
        self.floor = length

    @property
    def room(self) -> int | None:
        """How many tokens its pages hold; None without pages, where nothing bounds them."""
        geometry = self._store.geometry
        return len(self.pages) * geometry.unit if geometry.pages else None

    def row(self, width: int) -> tuple[int, ...]:
        """A page table's row for it: the first entry repeated past the last.

        Raises `CallerError`: the row is too short, or there is no page to repeat.
        """
        pages = self.pages
        if not 0 < len(pages) <= width:
            raise CallerError(f"a row of {width} pages does not hold {len(pages)}")
        return pages + pages[:1] * (width - len(pages))

    def extend(self, tokens: int) -> Denial | None:
        """Have room for `tokens` tokens in all; a denial changes nothing."""
        pages = self.pages
        if denial := self._store.never(tokens):
            return denial
        more = self._store.geometry.pages_for(tokens) - len(pages)
        if more <= 0:
            return None
        taken = self._store.take(more, 0, leased=True)
        if not isinstance(taken, Piece):
            return taken
        self._append(taken.pages)
        return None

    @staticmethod
    def grow(leases: Sequence["Lease"]) -> tuple[int, ...] | Denial:
        """A page more for each of some leases of a pool, in that order; a denial changes nothing.

        That is `extend` for many at once: most of what one costs is finding out that it may.
        """
        if not leases:
            return ()
        store = leases[0]._store  # noqa: SLF001 - its own class
        longest = max(len(lease.pages) for lease in leases) + 1
        if denial := store.never(longest * store.geometry.unit):
            return denial
        taken = store.take(len(leases), 0, leased=True)
        if not isinstance(taken, Piece):
            return taken
        for lease, page in zip(leases, taken.pages, strict=True):
            lease._append((page,))  # noqa: SLF001 - its own class
        return taken.pages

    def require_writable(self, start: int, tokens: int) -> None:
        """Raise unless `tokens` tokens may be written at positions from `start` on.

        Raises `CallerError`: positions are sealed, not reserved or would leave a hole; or the
        sequence has a slot, which goes on from its length only.
        """
        self.require_open()
        first = self.length if self._store.geometry.per_sequence else self.floor
        if not first <= start <= self.length:
            raise CallerError(
                f"a write at position {start}: expected {first} to {self.length}; what is below is"
                " sealed"
            )
        room = self.room
        if tokens < 0 or (room is not None and start + tokens > room):
            raise CallerError(
                f"a write of positions {start} to {start + tokens}: the pages hold {room}"
            )

    def advance(self, tokens: int) -> None:
        """Have `tokens` tokens more, written from `length` on.

        Raises `CallerError`: they may not be written.
        """
        self.require_writable(self.length, tokens)
        self.length += tokens

    def rewind(self, length: int) -> None:
        """Have only the first `length` tokens; the others will be written over.

        Raises `CallerError`: they are sealed, or there is a slot, which cannot go back.
        """
        self.require_writable(length, 0)
        self.length = length

    def checkpoint(self, length: int | None = None) -> Checkpoint | Denial:
        """The state at `length`, by default all of it; this lease goes on.

        Whole pages are shared and sealed; the part filled one and the slot are copied.

        Raises `CallerError`: there is no state of that length to keep.
        """
        at = self._reusable(length)
        found = self._branch(at, self._store.geometry.pages_for(at), leased=False)
        if not isinstance(found, tuple):
            return found
        return Checkpoint(self._store, found[0], at, found[1])

    def fork(self, tokens: int, length: int | None = None) -> "Lease | Denial":
        """A lease of `tokens` tokens in all that goes on from `length`, by default all of it.

        Raises `CallerError`: there is no state of that length to go on from.
        """
        at = self._reusable(length)
        require_room(tokens, at)
        if denial := self._store.over_row(tokens):
            return denial
        found = self._branch(at, self._store.geometry.pages_for(tokens), leased=True)
        return Lease(self._store, found[0], at, found[1]) if isinstance(found, tuple) else found

    def retire(self) -> Checkpoint:
        """Its state as it is, without a copy; pages beyond it are free and this lease is over.

        Raises `CallerError`: nothing was written.
        """
        at = self._reusable(None)
        count = self._store.geometry.pages_for(at)
        self._store.drop(Piece(self._piece.pages[count:]), leased=True)
        piece = Piece(self._piece.pages[:count], self._piece.slot)
        self._store.pass_on(piece, leased=False)
        self._open = False
        return Checkpoint(self._store, piece, at, NO_COPIES)

    def _append(self, pages: tuple[int, ...]) -> None:
        self._piece = Piece(self._piece.pages + pages, self._piece.slot)

    def _reusable(self, length: int | None) -> int:
        self.require_open()
        at = self.length if length is None else length
        require_reusable(self._store.geometry, at, self.length)
        return at

    def _branch(self, at: int, pages: int, *, leased: bool) -> tuple[Piece, Copies] | Denial:
        geometry = self._store.geometry
        shared = at // geometry.unit if geometry.pages else 0
        slots = int(geometry.per_sequence)
        if denial := self._store.beyond(len(self.pages) + pages - shared, 2 * slots):
            return denial
        found = self._store.branch(self._piece, at, pages, leased=leased)
        if isinstance(found, tuple):
            self.floor = max(self.floor, shared * geometry.unit)
        return found

    def _give_back(self) -> None:
        self._store.drop(self._piece, leased=True)


def restore(
    store: Store, checkpoint: Checkpoint, tokens: int, length: int | None = None
) -> Lease | Denial:
    """A lease of `tokens` tokens in all that goes on from a checkpoint, which stays.

    Raises `CallerError`: it has no state of that length, or the lease would be shorter.
    """
    at = checkpoint.length if length is None else length
    require_reusable(store.geometry, at, checkpoint.length)
    require_room(tokens, at)
    if denial := store.never(tokens):
        return denial
    found = store.branch(checkpoint.piece, at, store.geometry.pages_for(tokens), leased=True)
    return Lease(store, found[0], at, found[1]) if isinstance(found, tuple) else found


def resume(store: Store, checkpoint: Checkpoint, tokens: int) -> Lease | Denial:
    """A lease of `tokens` tokens in all that a checkpoint becomes, without a copy.

    A denial leaves the checkpoint as it is.

    Raises `CallerError`: the lease would be shorter.
    """
    require_room(tokens, checkpoint.length)
    if denial := store.never(tokens):
        return denial
    piece = checkpoint.piece
    taken = store.take(store.geometry.pages_for(tokens) - len(piece.pages), 0, leased=True)
    if not isinstance(taken, Piece):
        return taken
    checkpoint.resign()
    store.pass_on(piece, leased=True)
    rest = checkpoint.length % store.geometry.unit
    store.unseal(Piece(piece.pages[-1:] if rest else (), piece.slot))
    return Lease(store, Piece(piece.pages + taken.pages, piece.slot), checkpoint.length)


def require_room(tokens: int, length: int) -> None:
    """Raise unless `tokens` tokens in all are no fewer than the `length` a prefix has.

    Raises `CallerError`: they are.
    """
    if tokens < length:
        raise CallerError(f"a lease of {tokens} tokens that goes on from {length}: expected more")
