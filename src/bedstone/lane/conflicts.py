"""Which launches may not change places: one writes what the other reads or writes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bedstone.lane.launch import (
    Carry,
    Form,
    Launch,
    Read,
    ToBuf,
    ToEach,
    ToRows,
    ToScratch,
    Version,
)
from bedstone.lane.layout import View
from bedstone.lane.schedule import Step
from bedstone.lane.touch import Leaf, leaves

Place = tuple[str, Form]
"""A form of a tensor in memory, or a table."""


@dataclass(frozen=True, slots=True)
class _Access:
    """A launch reads or writes a row of a place, or all of it."""

    step: int
    row: int | None
    write: bool

    def meets(self, other: "_Access") -> bool:
        """Whether the order of both matters."""
        rows = self.row is None or other.row is None or self.row == other.row
        return rows and (self.write or other.write) and self.step != other.step


def followers(
    steps: tuple[Step, ...], views: Mapping[str, View], widths: Mapping[str, int]
) -> list[set[int]]:
    """For each step, those after it that must stay after it."""
    places: dict[Place, list[_Access]] = {}
    for at, step in enumerate(steps):
        for place, row, write in _accesses(step.launch, views, widths):
            places.setdefault(place, []).append(_Access(at, row, write))
    found: list[set[int]] = [set() for _ in steps]
    for accesses in places.values():
        for later, access in enumerate(accesses):
            for earlier in accesses[:later]:
                if earlier.meets(access):
                    found[earlier.step].add(access.step)
    return found


def _accesses(
    launch: Launch, views: Mapping[str, View], widths: Mapping[str, int]
) -> Iterator[tuple[Place, int | None, bool]]:
    for leaf in leaves(launch):
        yield from _access(leaf, views, widths)


def _access(
    leaf: Leaf, views: Mapping[str, View], widths: Mapping[str, int]
) -> Iterator[tuple[Place, int | None, bool]]:
    match leaf:
        case Read(tensor, form):
            yield (tensor, form), None, False
            if tensor in views:
                yield (views[tensor].parent, form), _row(leaf, views[tensor], widths), False
        case Version(table, _):
            yield (table, "f32"), None, False
        case Carry(table, _, _) | ToRows(table, _, _):
            yield (table, "f32"), None, True
        case ToEach(rows):
            yield from (((row.table, "f32"), None, True) for row in rows)
        case ToBuf(tensor, f32, quant):
            yield from (((tensor, form), None, True) for form in _forms(f32=f32, quant=quant))
        case ToScratch(tensor, row, _, f32, quant):
            yield from (((tensor, form), row, True) for form in _forms(f32=f32, quant=quant))


def _forms(*, f32: bool, quant: bool) -> Iterator[Form]:
    if f32:
        yield "f32"
    if quant:
        yield "quant"


def _row(read: Read, view: View, widths: Mapping[str, int]) -> int | None:
    """The one row of the parent that a read stays in."""
    layout = view.layout if read.row is None else view.layout.take_row(read.row)
    return layout.offset // widths[view.parent] if layout.rows == 1 else None
