"""Launches that belong to one sequence of a batch: which one, and what they are apart from it.

Two launches of different sequences are the same launch if their outlines are equal: operands are
then rows of the same tensors, states of the same name, or results of launches that are the same.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from bedstone.graph.step import AtParam
from bedstone.lane.facts import Facts
from bedstone.lane.launch import (
    Carry,
    OneLaunch,
    Read,
    ToBuf,
    ToEach,
    ToRows,
    ToScratch,
    Version,
)
from bedstone.lane.layout import View
from bedstone.lane.touch import Leaf, leaves, rewrite


@dataclass(frozen=True, slots=True)
class Outline:
    """A launch without what is its sequence's own, and the number of that sequence."""

    sequence: int
    same: Hashable


@dataclass(slots=True)
class Outliner:
    """Outlines launches in order; `own` holds the sequence and the kind of each tensor made.

    Tensors of one kind are those that the same launches make for different sequences.
    """

    facts: Facts
    views: Mapping[str, View]
    own: dict[str, tuple[int, int]] = field(default_factory=dict)
    _kinds: dict[Hashable, int] = field(default_factory=dict)
    _seen: dict[tuple[int, Hashable], int] = field(default_factory=dict)

    def outline(self, launch: OneLaunch) -> Outline | None:
        """The outline of a launch of one sequence; None for one of the whole batch."""
        numbers: set[int] = set()
        bare = rewrite(launch, lambda leaf: self._bare(leaf, numbers))
        pos = getattr(launch, "pos", None)
        if isinstance(pos, str):
            numbers.add(_number(pos))
            bare = replace(bare, pos="")  # type: ignore[arg-type]
        if len(numbers) != 1 or getattr(launch, "rows", 1) != 1:
            return None
        (number,) = numbers
        if number < 0:
            return None
        times = self._seen[number, bare] = self._seen.get((number, bare), -1) + 1
        found = Outline(number, (bare, times))
        self._note(launch, found)
        return found

    def _note(self, launch: OneLaunch, outline: Outline) -> None:
        """Take note of the tensors a launch makes for its sequence alone."""
        made = [leaf for leaf in leaves(launch) if isinstance(leaf, ToBuf)]
        for at, leaf in enumerate(made):
            kind = self._kinds.setdefault((outline.same, at), len(self._kinds))
            self.own[leaf.tensor] = (outline.sequence, kind)

    def _bare(self, leaf: Leaf, numbers: set[int]) -> Leaf:
        """A leaf without its sequence, whose number it adds; -1 where it has none."""
        if isinstance(leaf, ToBuf):
            return ToBuf("", leaf.f32, leaf.quant)
        if isinstance(leaf, ToEach):
            numbers.add(-1)
            return leaf
        number, bare = self._owned(leaf)
        numbers.add(number)
        return bare

    def _owned(self, leaf: Read | Version | Carry | ToRows | ToScratch) -> tuple[int, Leaf]:
        """The sequence whose own a leaf names, and the leaf without it."""
        match leaf:
            case Read():
                number, name, at = self._place(leaf)
                return number, Read(f"{name}+{at}", leaf.form, leaf.window)
            case Version(table, _):
                return _number(table), Version(_stem(table), "")
            case Carry(table, _, _):
                return _number(table), Carry(_stem(table), "", "")
            case ToRows(table, at, _, columns):
                number = _number(table)
                same = at == AtParam(self.facts.position(number))
                return number, ToRows(_stem(table), AtParam("") if same else at, "", columns)
            case ToScratch(table, row, _, f32, quant):
                return row, ToScratch(table, 0, "", f32, quant)

    def _place(self, read: Read) -> tuple[int, str, int]:
        """The sequence a read belongs to, the tensor it lies in, and where in its row."""
        if read.form == "quant" and read.tensor in self.own:
            number, kind = self.own[read.tensor]
            return number, f"own {kind}", 0
        view = self.views.get(read.tensor, self.facts.whole(read.tensor))
        layout = view.layout if read.row is None else view.layout.take_row(read.row)
        width = self.facts.width(view.parent)
        row, start = divmod(layout.offset, width)
        if view.parent in self.own:
            number, kind = self.own[view.parent]
            return number, f"own {kind}", start
        one = layout.rows == 1 and self.facts.rows(view.parent) == self.facts.graph.rows
        return (row if one else -1), view.parent, start


def _number(name: str) -> int:
    """The sequence whose number a name ends in; -1 where it ends in none."""
    number = name.rpartition(".")[2]
    return int(number) if number.isdecimal() else -1


def _stem(name: str) -> str:
    return name.rpartition(".")[0]
