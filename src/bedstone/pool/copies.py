"""Data that must move for the accounts to be true: plain records, neighbours as one run."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from bedstone.spec.frozen import Frozen

RecordT = TypeVar("RecordT")


class PageCopy(Frozen):
    """The first `tokens` tokens from page `source` on, in every paged state, to page `target` on.

    More than a page of them are of the pages that follow.
    """

    source: int
    target: int
    tokens: int


class SlotCopy(Frozen):
    """`count` slots from `source` on, in every per-sequence state, to `target` on."""

    source: int
    target: int
    count: int = 1


class SlotClear(Frozen):
    """`count` slots from `target` on are set to zero: a sequence begins there."""

    target: int
    count: int = 1


class Copies(Frozen):
    """What to do on the device, in this order, before the next step."""

    pages: tuple[PageCopy, ...] = ()
    slots: tuple[SlotCopy | SlotClear, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pages or self.slots)


NO_COPIES = Copies()


class PageMove(Frozen):
    """`count` pages from `page` on lie on the host from byte `offset` on, a stride apart."""

    page: int
    offset: int
    count: int = 1


class SlotMove(Frozen):
    """`count` slots from `slot` on lie on the host from byte `offset` on, a stride apart."""

    slot: int
    offset: int
    count: int = 1


class Moves(Frozen):
    """What goes to the host, or comes from it. Moves are made in the order they are returned."""

    to_host: bool
    pages: tuple[PageMove, ...] = ()
    slots: tuple[SlotMove, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pages or self.slots)


NO_MOVES = Moves(to_host=True)


def merge(several: Iterable[Copies], unit: int) -> Copies:
    """The copies of several as one, in their order; pages are of `unit` tokens."""
    held = tuple(several)

    def page_run(one: PageCopy, two: PageCopy) -> PageCopy | None:
        count, rest = divmod(one.tokens, unit)
        follows = two.source == one.source + count and two.target == one.target + count
        return (
            PageCopy(one.source, one.target, one.tokens + two.tokens)
            if follows
            and not rest
            and _apart(one.source, one.target, count + -(-two.tokens // unit))
            else None
        )

    return Copies(
        _runs([copy for each in held for copy in each.pages], page_run),
        _runs([copy for each in held for copy in each.slots], _slot_run),
    )


def page_moves(moved: Iterable[tuple[int, int]], stride: int) -> tuple[PageMove, ...]:
    """Pages, each with where it lies on the host, neighbours as one."""

    def run(one: PageMove, two: PageMove) -> PageMove | None:
        follows = two.page == one.page + one.count and two.offset == one.offset + one.count * stride
        return PageMove(one.page, one.offset, one.count + two.count) if follows else None

    return _runs([PageMove(page, offset) for page, offset in moved], run)


def _apart(source: int, target: int, count: int) -> bool:
    """Whether no copy of the run reads what another of it wrote."""
    return abs(source - target) >= count


def _slot_run(one: SlotCopy | SlotClear, two: SlotCopy | SlotClear) -> SlotCopy | SlotClear | None:
    count = one.count + two.count
    if two.target != one.target + one.count:
        return None
    if isinstance(one, SlotClear) and isinstance(two, SlotClear):
        return SlotClear(one.target, count)
    if isinstance(one, SlotClear) or isinstance(two, SlotClear):
        return None
    joined = two.source == one.source + one.count and _apart(one.source, one.target, count)
    return SlotCopy(one.source, one.target, count) if joined else None


def _runs(
    records: Sequence[RecordT], join: Callable[[RecordT, RecordT], RecordT | None]
) -> tuple[RecordT, ...]:
    found: list[RecordT] = []
    for record in records:
        joined = join(found[-1], record) if found else None
        if joined is None:
            found.append(record)
        else:
            found[-1] = joined
    return tuple(found)
