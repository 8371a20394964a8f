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


class Flow:
    """A program's calls as what they read and write, for the frontiers of its stretches."""

    def __init__(self, manifest: Manifest, program: str) -> None:
        self._manifest = manifest
        calls = manifest.programs[program].calls
        self._calls = [_touched(manifest, call) for call in calls]
        later = frozenset[Place]()
        # what the calls from each one on read of what came before it
        self._later = [later]
        for reads, written in reversed(self._calls):
            later = reads | (later - written)
            self._later.append(later)
        self._later.reverse()

    def frontier(self, start: int, stop: int) -> Frontier:
        """The frontier of calls [start, stop)."""
        reads: set[Place] = set()
        written: set[Place] = set()
        for call_reads, call_written in self._calls[start:stop]:
            reads |= call_reads - written
            written |= call_written
        lasting = {place for place in written if _lasts(self._manifest, place)}
        writes = frozenset(written & self._later[stop] | lasting)
        return Frontier(frozenset(reads), writes, frozenset(written))


def _touched(manifest: Manifest, call: Call) -> tuple[frozenset[Place], frozenset[Place]]:
    """Places that a call reads, and places that it writes."""
    accesses = list(_accesses(manifest, call))
    return (
        frozenset(place for place, way in accesses if way != "out"),
        frozenset(place for place, way in accesses if way != "in"),
    )


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
