"""What a stretch of a program reads of what came before, and leaves for what comes after. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.spec.manifest import BufArg, Call, Manifest, StateArg
from bedstone.verify.binding import call_bindings, direction

_LASTS = frozenset({"output", "inout", "carry"})
"""Kinds whose contents mean something after the program."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where an argument points: `offset` bytes into a buffer or a state."""

    kind: str
    name: str
    offset: int

    def __str__(self) -> str:
        return f"{self.kind} `{self.name}`" + (f" + {self.offset}" if self.offset else "")


@dataclass(frozen=True, slots=True)
class Frontier:
    """`reads` was made before, `writes` means something afterwards; `written` is all it writes."""

    reads: frozenset[Place]
    writes: frozenset[Place]
    written: frozenset[Place]


def frontier(manifest: Manifest, program: str, start: int, stop: int) -> Frontier:
    """The frontier of calls [start, stop) of a program."""
    calls = manifest.programs[program].calls
    reads, written = _flow(manifest, calls[start:stop])
    later, _ = _flow(manifest, calls[stop:])
    lasting = {place for place in written if _lasts(manifest, place)}
    return Frontier(frozenset(reads), frozenset(written & later | lasting), frozenset(written))


def _flow(manifest: Manifest, calls: tuple[Call, ...]) -> tuple[set[Place], set[Place]]:
    """Places read before these calls write them anew, and places written."""
    reads: set[Place] = set()
    written: set[Place] = set()
    for call in calls:
        accesses = list(_accesses(manifest, call))
        reads |= {place for place, way in accesses if way != "out" and place not in written}
        written |= {place for place, way in accesses if way != "in"}
    return reads, written


def _accesses(manifest: Manifest, call: Call) -> Iterator[tuple[Place, str]]:
    for param, arg in call_bindings(manifest.ops[call.op], call):
        way = direction(param)
        if way is None:
            continue
        if isinstance(arg, BufArg) and manifest.buffers[arg.buf].kind != "weight":
            yield Place("buffer", arg.buf, arg.offset), way
        elif isinstance(arg, StateArg):
            yield Place("state", arg.state, arg.offset), way


def _lasts(manifest: Manifest, place: Place) -> bool:
    return place.kind == "state" or manifest.buffers[place.name].kind in _LASTS
