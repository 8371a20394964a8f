"""Rules as rows: what a rule is, how rows nest, and the one loop that judges them.

A topic file declares rows over one kind of *subject* (a buffer, a launch, a call's argument). An
`Each` row descends from a subject to its parts, so a table reads in the order its faults come out.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from bedstone.spec.fault import Fault
from bedstone.spec.frozen import Frozen

SubjectT_contra = TypeVar("SubjectT_contra", contravariant=True)
PartT = TypeVar("PartT")

LISTED = 8
"""How many names a message lists."""


class Finding(Frozen):
    """A fault before its rule stamps an id on it."""

    message: str
    path: str
    objects: tuple[str, ...]


class Place(Frozen):
    """Where in the manifest a subject stands.

    `text` says it in a sentence, `path` is its JSON pointer, `objects` names what it belongs to,
    each as the kind, one space and the name (``buffer kv.pages``).
    """

    text: str
    path: str
    objects: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text

    def inner(self, text: str, path: str, *objects: str) -> "Place":
        """A part of this place: its own words after ours, its pointer below ours."""
        return Place(f"{self.text} {text}", self.path + path, self.objects + objects)

    def finding(self, problem: str, *objects: str, at: str = "") -> Finding:
        """A finding here, or `at` a pointer below, that also blames `objects`."""
        return Finding(f"{self.text} {problem}", self.path + at, self.objects + objects)


class Rule(Frozen, Generic[SubjectT_contra]):
    """One rule: a stable id, its topic, and the check whose docstring says what must hold."""

    id: str
    topic: str
    check: Callable[[SubjectT_contra], Iterable[Finding]]

    @property
    def requires(self) -> str:
        """What must hold, in one sentence."""
        return (self.check.__doc__ or "").partition("\n")[0]


class Each(Frozen, Generic[SubjectT_contra, PartT]):
    """The rows `rows`, judged on every part that `parts` finds in the subject."""

    parts: Callable[[SubjectT_contra], Iterable[PartT]]
    rows: "Rows[PartT]"


Row = Rule[SubjectT_contra] | Each[SubjectT_contra, Any]
Rows = tuple[Row[SubjectT_contra], ...]


def judge(rows: Rows[PartT], subject: PartT) -> Iterator[Fault]:
    """Every fault of `subject`, in the order of the rows."""
    for row in rows:
        if isinstance(row, Rule):
            for found in row.check(subject):
                yield Fault(row.id, found.path, found.objects, found.message)
        else:
            for part in row.parts(subject):
                yield from judge(row.rows, part)


def rules_of(rows: Rows[Any]) -> Iterator[Rule[Any]]:
    """The rules of a table and of the tables below it; one that stands in two comes twice."""
    for row in rows:
        if isinstance(row, Rule):
            yield row
        else:
            yield from rules_of(row.rows)


def escape(key: str) -> str:
    """A key as a JSON pointer spells it."""
    return key.replace("~", "~0").replace("/", "~1")


def listed(names: Sequence[str]) -> str:
    """Names in backticks, separated by commas; the first few of many."""
    shown = ", ".join(f"`{name}`" for name in names[:LISTED])
    left = len(names) - LISTED
    return f"{shown} and {left} more" if left > 0 else shown
