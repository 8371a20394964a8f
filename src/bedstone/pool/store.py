"""The accounts that everything held of a pool shares, and what it is to hold something."""

from typing import Self

from bedstone.errors import CallerError
from bedstone.pool.copies import Copies, PageCopy, SlotCopy
from bedstone.pool.denial import Busy, ExceedsPool, ExceedsRow, Remapping
from bedstone.pool.exchange import Exchange
from bedstone.pool.geometry import Geometry
from bedstone.pool.host import Host
from bedstone.pool.stock import Stock
from bedstone.spec.frozen import Frozen


class Piece(Frozen):
    """Pages in the order a sequence fills them, and a slot: 0 where there is none."""

    pages: tuple[int, ...] = ()
    slot: int = 0

    @property
    def slots(self) -> tuple[int, ...]:
        """The slot, if there is one."""
        return (self.slot,) if self.slot else ()


class Store:
    """Who uses which page, slot and place on the host."""

    def __init__(
        self, geometry: Geometry, host: Host | None, exchange: Exchange | None = None
    ) -> None:
        self.geometry = geometry
        self.host = host
        self.exchange = exchange
        self.pages: Stock = exchange.pages if exchange else Stock(0, geometry.pages)
        self.slots: Stock = exchange.slots if exchange else Stock(1, geometry.slots)

    def never(self, tokens: int) -> ExceedsRow | ExceedsPool | None:
        """Why a sequence of so many tokens can never be held.

        Raises `CallerError`: it has none.
        """
        pages, slots = self.geometry.pages_for(tokens), int(self.geometry.per_sequence)
        return self.over_row(tokens) or self.beyond(pages, slots)

    def over_row(self, tokens: int) -> ExceedsRow | None:
        """Why no row has so many tokens.

        Raises `CallerError`: there are none.
        """
        limit = self.geometry.limit
        if tokens < 1:
            raise CallerError(f"a sequence of {tokens} tokens: expected 1 at least")
        return ExceedsRow(tokens, limit) if limit is not None and tokens > limit else None

    def beyond(self, pages: int, slots: int) -> ExceedsPool | None:
        """Why so much can never be held at once."""
        exchange = self.exchange
        if exchange is not None:
            if exchange.holds(pages, slots):
                return None
            arenas = exchange.arenas
            return ExceedsPool(pages, slots, arenas.most_pages, arenas.most_slots - 1)
        there = max(0, self.geometry.slots - 1)
        if pages > self.geometry.pages or slots > there:
            return ExceedsPool(pages, slots, self.geometry.pages, there)
        return None

    def take(self, pages: int, slots: int, *, leased: bool) -> Piece | Busy | Remapping:
        """All of it or nothing."""
        if pages > self.pages.free or slots > self.slots.free:
            coming = self.exchange is not None and self.exchange.provide(pages, slots)
            short = (max(0, pages - self.pages.free), max(0, slots - self.slots.free))
            # where nothing has to move, what was missing is there by now
            if any(short):
                return Remapping(*short) if coming else Busy(*short)
        taken = self.slots.take(slots, leased=leased)
        return Piece(self.pages.take(pages, leased=leased), taken[0] if taken else 0)

    def branch(
        self, origin: Piece, length: int, pages: int, *, leased: bool
    ) -> tuple[Piece, Copies] | Busy | Remapping:
        """Pages, so many in all, and a slot that go on from `length` tokens of `origin`.

        Its whole pages are shared; of the part filled one and of the slot there are copies.
        """
        unit = self.geometry.unit
        whole, rest = divmod(length, unit) if self.geometry.pages else (0, 0)
        taken = self.take(pages - whole, len(origin.slots), leased=leased)
        if not isinstance(taken, Piece):
            return taken
        shared = origin.pages[:whole]
        self.pages.add(shared, leased=leased)
        copies = Copies(
            (PageCopy(origin.pages[whole], taken.pages[0], rest),) if rest else (),
            tuple(map(SlotCopy, origin.slots, taken.slots)),
        )
        return Piece(shared + taken.pages, taken.slot), copies

    def drop(self, piece: Piece, *, leased: bool) -> None:
        """One user less; what has none is free, and no twin of anything."""
        pages = self.pages.drop(piece.pages, leased=leased)
        slots = self.slots.drop(piece.slots, leased=leased)
        if self.host is not None:
            self.host.pages.forget_numbers(pages)
            self.host.slots.forget_numbers(slots)

    def pass_on(self, piece: Piece, *, leased: bool) -> None:
        """From a checkpoint to a lease (`leased`) or back."""
        for stock, numbers in ((self.pages, piece.pages), (self.slots, piece.slots)):
            stock.add(numbers, leased=leased)
            stock.drop(numbers, leased=not leased)

    def unseal(self, piece: Piece) -> None:
        """It will be written: what the host has is no longer the same."""
        if self.host is not None:
            self.host.pages.forget_numbers(piece.pages)
            self.host.slots.forget_numbers(piece.slots)


class Held:
    """Something of a pool that is held until it is closed. Closing again does nothing."""

    __slots__ = ("_open", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open = True

    @property
    def is_open(self) -> bool:
        """Whether it is held still."""
        return self._open

    def close(self) -> None:
        """Give everything back."""
        if self._open:
            self._open = False
            self._give_back()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _give_back(self) -> None:
        raise NotImplementedError

    def require_open(self) -> None:
        """Raise unless it is held still.

        Raises `CallerError`: it was given back.
        """
        if not self._open:
            raise CallerError(f"a {type(self).__name__.lower()} is used after it was given back")


class Resident(Held):
    """`length` tokens of a sequence in pages and a slot, once `copies` are made."""

    __slots__ = ("_piece", "copies", "length")

    def __init__(self, store: Store, piece: Piece, length: int, copies: Copies) -> None:
        super().__init__(store)
        self._piece = piece
        self.length = length
        self.copies = copies

    @property
    def pages(self) -> tuple[int, ...]:
        """Its pages in the order the sequence fills them; the last may be part filled."""
        self.require_open()
        return self._piece.pages

    @property
    def slot(self) -> int:
        """Its slot, 0 where there is none."""
        self.require_open()
        return self._piece.slot
