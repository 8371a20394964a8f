"""What lies on the host, and what is on its way back."""

from bedstone.pool.checkpoint import Checkpoint, require_reusable
from bedstone.pool.copies import NO_COPIES, Moves, SlotMove, page_moves
from bedstone.pool.denial import Denial, HostFull
from bedstone.pool.host import Host, Place
from bedstone.pool.store import Held, Piece, Store


class Parked(Held):
    """`length` tokens of a sequence on the host, once `moves` are made.

    Pages that were there already are not moved again.
    """

    __slots__ = ("_host", "_place", "length", "moves")

    def __init__(self, store: Store, host: Host, place: Place, length: int, moves: Moves) -> None:
        super().__init__(store)
        self._host = host
        self._place = place
        self.length = length
        self.moves = moves

    @property
    def host(self) -> Host:
        """The tier it lies on."""
        return self._host

    @property
    def place(self) -> Place:
        """Where it lies."""
        self.require_open()
        return self._place

    def _give_back(self) -> None:
        self._host.drop(self._place)


class Waking(Held):
    """A checkpoint on its way back to the device; `moves` are to be made for it.

    Closed instead of awake, it gives its pages back: only once no move of it is under way.
    """

    __slots__ = ("_image", "_piece", "length", "moves")

    def __init__(self, store: Store, image: Parked, piece: Piece, moves: Moves) -> None:
        super().__init__(store)
        self._image = image
        self._piece = piece
        self.length = image.length
        self.moves = moves

    def awake(self) -> Checkpoint:
        """The checkpoint, once the moves are made. What is parked stays its twin."""
        self.require_open()
        self._open = False
        host, place = self._image.host, self._image.place
        for page, offset in zip(self._piece.pages, place.pages, strict=True):
            host.pages.link(page, offset)
        if place.slot is not None:
            host.slots.link(self._piece.slot, place.slot)
        self._image.close()
        return Checkpoint(self._store, self._piece, self.length, NO_COPIES)

    def _give_back(self) -> None:
        self._image.close()
        self._store.drop(self._piece, leased=False)


def park(store: Store, checkpoint: Checkpoint) -> Parked | HostFull:
    """A checkpoint on the host too; close it once the moves are made to have its pages back."""
    piece = checkpoint.piece
    host = store.host
    if host is None:
        return HostFull(0, 0)
    pages = [page for page in piece.pages if host.pages.offset(page) is None]
    slots = [slot for slot in piece.slots if host.slots.offset(slot) is None]
    taken = host.take(len(pages), len(slots))
    if isinstance(taken, HostFull):
        return taken
    moved = list(zip(pages, taken.pages, strict=True))
    for page, offset in moved:
        host.pages.link(page, offset)
    if taken.slot is not None:
        host.slots.link(piece.slot, taken.slot)
    offsets = map(host.pages.offset, piece.pages)
    place = Place(
        tuple(each for each in offsets if each is not None), host.slots.offset(piece.slot)
    )
    host.add(place)
    host.drop(taken)
    moves = Moves(
        to_host=True,
        pages=page_moves(moved, host.room.page_stride),
        slots=() if taken.slot is None else (SlotMove(piece.slot, taken.slot),),
    )
    return Parked(store, host, place, checkpoint.length, moves)


def wake(store: Store, parked: Parked, length: int | None = None) -> Waking | Denial:
    """The first `length` tokens of what is parked, by default all, on their way back.

    Whole pages that the device has still are shared with it.

    Raises `CallerError`: it has no state of that length.
    """
    at = parked.length if length is None else length
    require_reusable(store.geometry, at, parked.length)
    if denial := store.never(at):
        return denial
    host, geometry = parked.host, store.geometry
    place = Place(parked.place.pages[: geometry.pages_for(at)], parked.place.slot)
    whole = at // geometry.unit if geometry.pages else 0
    found = [host.pages.number(offset) for offset in place.pages[:whole]]
    twins = [*found, *[None] * (len(place.pages) - whole)]
    shared = [page for page in twins if page is not None]
    taken = store.take(len(twins) - len(shared), int(place.slot is not None), leased=False)
    if not isinstance(taken, Piece):
        return taken
    store.pages.add(shared, leased=False)
    host.add(place)
    fresh = iter(taken.pages)
    pages = tuple(next(fresh) if twin is None else twin for twin in twins)
    absent = [offset for offset, twin in zip(place.pages, twins, strict=True) if twin is None]
    moves = Moves(
        to_host=False,
        pages=page_moves(zip(taken.pages, absent, strict=True), host.room.page_stride),
        slots=() if place.slot is None else (SlotMove(taken.slot, place.slot),),
    )
    image = Parked(store, host, place, at, moves)
    return Waking(store, image, Piece(pages, taken.slot), moves)
