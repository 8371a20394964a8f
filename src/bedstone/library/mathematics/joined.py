"""What kernels that do several launches compute: the mathematics of those, one after the other."""

import re
from collections.abc import Iterator, Mapping

from bedstone.library.cuda.attend import JOININGS as ATTENTION
from bedstone.library.cuda.tail import JOININGS as TAILS
from bedstone.library.kernel import Joining, Settled, Taken
from bedstone.library.mathematics.dense import DENSE
from bedstone.library.mathematics.family import Family
from bedstone.library.mathematics.heads import HEADS

_TABLE = "_rows"
"""Ends the name of an entry whose last result goes to the rows of a table."""

_PLACES = {"capacity": "pages_width*page"}
"""Where keys are paged a rotation has a row for every position that they have."""

_SLOT = "slots_at(position, pages, $page, $stride)"
"""A key goes where its position is looked for."""

_TABLES = {"page": 8, "pages_width": 5, "stride": 0}
_SMALL: Mapping[str, Mapping[str, int | float]] = {
    "attention_turned": {
        "rows": 1, "heads": 4, "groups": 2, "heads0": 4, "heads1": 2, "dk": 64, "dv": 64,
        "head_dim": 64, "rot": 64, "kind": 0, "eps": 1e-6, "plus_one": 1, "scale": 0.3,
        "window": 0, "softcap": 0.0, **_TABLES,
    },
    "tail": {
        "inner": 2304, "width": 2048, "ff": 2048, "n0": 96, "n1": 32, "n2": 40, "n": 104, "act": 0,
        "eps_post": 1e-6, "plus_one_post": 1, "eps": 1e-5, "plus_one": 0, "slots": 5,
    },
}  # fmt: skip
"""Sizes of a kind that suit every kernel of it."""


class _Step:
    """A launch of a joined kernel in the words of that kernel."""

    def __init__(self, taken: Taken, settled: Mapping[str, Settled]) -> None:
        self.entry = taken.entry
        self.family = _family(taken.entry)
        self.names = taken.names
        self._settled = settled

    def shapes(self) -> dict[str, str]:
        """The axes of its tensors."""
        every = {**self.family.shapes, "slot": "rows"}.items()
        return {self._name(name): self._sizes(axes) for name, axes in every}

    def lines(self) -> Iterator[str]:
        """What it computes; keys and values are rounded as their tables hold them."""
        yield f"# {self.entry}"
        yield re.sub(r"\$?[a-z_]\w*", self._word, self.family.body.strip("\n"))
        if self.table is not None:
            slot, last = self._name("slot"), self._name(self._last)
            yield f"{self.table} = placed({self.table}, {slot}, {last}, 0).bfloat16().double()"

    def results(self) -> list[str]:
        """What it leaves beside a table."""
        results = self.family.results.split()
        made = results if self.table is None else results[:-1]
        return [self._name(name) for name in made]

    def makes(self) -> dict[str, str]:
        """How its inputs are made."""
        every = self.family.makes.items()
        return {self._name(name): self._sizes(text) for name, text in every}

    @property
    def table(self) -> str | None:
        """The table that its last result goes to."""
        return self._name("table") if self.entry.endswith(_TABLE) else None

    def table_shape(self) -> str:
        """The axes of its table, where no launch that reads it says more."""
        return f"slots {self._sizes(self.family.shapes[self._last].split(maxsplit=1)[1])}"

    @property
    def _last(self) -> str:
        return self.family.results.split()[-1]

    def _name(self, own: str) -> str:
        return self.names.get(own, own)

    def _word(self, found: re.Match[str]) -> str:
        """A tensor by its name, a number (`$name`) by its own or as what it is settled to be."""
        word = found[0]
        if word.startswith("$"):
            return self._number(word[1:], "$")
        return self._name(word) if word in self.family.shapes else word

    def _sizes(self, text: str) -> str:
        """Axes, or how an input is made: numbers stand there by name, some as `$name`."""
        text = re.sub("|".join(rf"\b{name}\b" for name in _PLACES), lambda m: _PLACES[m[0]], text)
        return re.sub(r"(\$?)([a-z_]\w*)", lambda m: self._number(m[2], m[1]), text)

    def _number(self, own: str, mark: str) -> str:
        name = self._name(own)
        value = self._settled.get(name)
        if value is None:
            return mark + name
        if isinstance(value, tuple):
            return f"({'*'.join(mark + each for each in value)})"
        return repr(value)


def _family(entry: str) -> Family:
    """The mathematics of an entry: that of the longest name it begins with."""
    known = {**DENSE, **HEADS}
    words = entry.split("_")
    names = ("_".join(words[:end]) for end in range(len(words), 0, -1))
    return next(known[name] for name in names if name in known)


def composed(joining: Joining) -> Family:
    """What a kernel computes that does several launches."""
    steps = [_Step(taken, joining.settled) for taken in joining.taken]
    own = {step.table: step.table_shape() for step in steps if step.table is not None}
    shapes = own | {name: axes for step in steps for name, axes in step.shapes().items()}
    results = [n for step in steps for n in step.results() if n not in joining.handed]
    makes = {name: text for step in steps for name, text in step.makes().items()}
    defaults = {name: value for step in steps for name, value in step.family.defaults.items()}
    # whoever attends looks at a table by groups
    laid = [f"{step.table} = {step.table}.flatten(1)" for step in steps if step.table is not None]
    return Family(
        joining.kind,
        {name: axes for name, axes in shapes.items() if name not in joining.handed},
        "\n".join([*(line for step in steps for line in step.lines()), *laid]),
        " ".join(results),
        sizes=_SMALL[joining.kind],
        makes=makes | ({"slot": _SLOT} if "position" in shapes else {}),
        defaults=defaults,
    )


def _rows() -> Iterator[tuple[str, Joining]]:
    """Each entry that is compiled, and a row of it: others differ in how it is launched."""
    for joining in (*ATTENTION, *TAILS):
        yield joining.geometry.function or joining.entry, joining


JOINED: Mapping[str, Family] = {
    entry: composed(joining) for entry, joining in dict(_rows()).items()
}
