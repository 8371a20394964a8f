"""Our verdict beside the reference's: the same faults of the same objects, in the same order."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from bedstone.spec.codec import parse
from bedstone.spec.fault import Fault, ParseError
from bedstone.verify import check
from reference_messages import Said, said
from reference_reader import Answer

NEWER = re.compile(r'"(chat|clamp|temperature|top_k|top_p|min_p|seed)"')
OPERATOR = re.compile(r"(only the fields|exactly one of) `(ceil_div|mul|add|clamp)`")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One manifest on which the two differ; `allowed` names a difference we mean to have."""

    kind: str
    allowed: str | None
    ours: tuple[str, ...]
    reference: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """Our faults, and whether they are the parser's."""

    faults: tuple[Fault, ...]
    parsed: bool


def judged(text: str) -> Judged:
    """What we say of a manifest's text."""
    try:
        manifest = parse(text)
    except ParseError as error:
        return Judged((error.fault,), parsed=False)
    return Judged(tuple(check(manifest)), parsed=True)


def disagreement(text: str, answer: Answer) -> Disagreement | None:
    """How our verdict differs from the reference's, or None."""
    ours = judged(text)
    kind = _difference(ours, answer)
    if kind is None:
        return None
    faults = tuple(f"[{f.rule}] {f}" for f in ours.faults)
    return Disagreement(kind, _allowed(text, ours), faults, answer.messages)


def _difference(ours: Judged, answer: Answer) -> str | None:
    if answer.accepted != (not ours.faults):
        return "we accept" if not ours.faults else "we refuse"
    heard = _heard(answer)
    if (heard is None) == ours.parsed and ours.faults:
        return "we refuse it later" if ours.parsed else "we refuse it earlier"
    if heard is None or not ours.parsed:
        return None
    return _faults_differ(ours.faults, heard)


def _heard(answer: Answer) -> list[Said] | None:
    """The verifier's diagnostics, or None for one of the parser's."""
    try:
        # The reference says some faults of a grid twice; once is enough.
        return [said(message) for message in dict.fromkeys(answer.messages)]
    except LookupError:
        if len(answer.messages) == 1:
            return None
        raise


def _faults_differ(faults: tuple[Fault, ...], heard: list[Said]) -> str | None:
    matched = [[i for i, f in enumerate(faults) if one.matches(f)] for one in heard]
    if not all(matched):
        return "a fault we miss"
    if {i for found in matched for i in found} != set(range(len(faults))):
        return "a fault we add"
    return None if _in_order(matched) else "the order"


def _in_order(matched: list[list[int]]) -> bool:
    """Whether our faults can be read off in the order the reference says them."""
    at = 0
    for found in matched:
        at = min((i for i in found if i >= at), default=-1)
        if at < 0:
            return False
    return True


def _allowed(text: str, ours: Judged) -> str | None:
    return next((name for name, holds in ALLOWED.items() if holds(text, ours)), None)


def _is_newer(text: str, _ours: Judged) -> bool:
    return NEWER.search(text) is not None


def _is_positional(_text: str, ours: Judged) -> bool:
    return _rules(ours) == {"P11"}


def _has_operators(_text: str, ours: Judged) -> bool:
    return _rules(ours) <= {"P4", "P9"} and any(OPERATOR.search(f.message) for f in ours.faults)


def _overflows(_text: str, ours: Judged) -> bool:
    return _rules(ours) == {"P6"} and "within float32" in ours.faults[0].message


def _wraps(text: str, ours: Judged) -> bool:
    if not _rules(ours) & {"G5", "G11"}:
        return False
    ops = json.loads(text)["ops"].values()
    launches = [launch for op in ops for launch in op["impl"]["launches"]]
    sides = [launch.get(key) or [1] for launch in launches for key in ("block", "cluster")]
    return any(math.prod(side) >= 2**64 for side in sides)


def _rules(ours: Judged) -> set[str]:
    return {fault.rule for fault in ours.faults}


ALLOWED: dict[str, Callable[[str, Judged], bool]] = {
    "the schema is newer than the reference": _is_newer,
    "a struct as an array, an enum as an object": _is_positional,
    "more than an operator in an expression": _has_operators,
    "an f32 literal beyond float32": _overflows,
    "a product that wraps": _wraps,
}
"""The differences we mean to have; `docs/manifest.md` gives the reasons."""
