"""A manifest seen as stages: which calls each one has, and what crosses between them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from bedstone.spec.manifest import Call, Manifest, Program
from bedstone.verify.cut.touches import Region, Touch, live, touches, written


@dataclass(frozen=True, slots=True)
class Request:
    """A manifest and the call indices before which each of its driven programs is cut."""

    manifest: Manifest
    at: tuple[int, ...]

    @property
    def driven(self) -> dict[str, Program]:
        """The programs with a `batch`, by name."""
        programs = sorted(self.manifest.programs.items())
        return {name: program for name, program in programs if program.batch is not None}


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: its programs, each with its own calls only, and what comes in and goes out."""

    index: int
    programs: Mapping[str, Program]
    arrives: frozenset[str]
    leaves: frozenset[str]

    def touches(self, manifest: Manifest) -> Iterator[tuple[str, Touch]]:
        """What the stage's calls touch, with the program each belongs to."""
        for name, program in self.programs.items():
            for call in program.calls:
                for touch in touches(manifest.ops, call):
                    yield name, touch


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A request in stages; `crossing` is what crosses each edge, by program."""

    request: Request
    crossing: tuple[Mapping[str, frozenset[str]], ...]
    stages: tuple[Stage, ...]

    @staticmethod
    def of(request: Request) -> "Pipeline":
        """The stages of a request that keeps the rules of one."""
        crossing = tuple(_crossing(request, edge) for edge in request.at)
        unions = [frozenset[str](), *map(_union, crossing), frozenset[str]()]
        stages = tuple(
            Stage(index, _programs(request, index), arrives, leaves)
            for index, (arrives, leaves) in enumerate(pairwise(unions))
        )
        return Pipeline(request, crossing, stages)


def _crossing(request: Request, edge: int) -> dict[str, frozenset[str]]:
    """What each program writes before call `edge` and reads from it on."""
    ops = request.manifest.ops
    return {
        name: live(ops, program.calls[edge:]) & written(ops, program.calls[:edge])
        for name, program in request.driven.items()
    }


def _union(crossing: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*crossing.values())


def _programs(request: Request, index: int) -> dict[str, Program]:
    """The programs of a stage: its share of the driven ones, and what these need of the others."""
    begin, end = (0, *request.at)[index], (*request.at, None)[index]
    driven = {
        name: replace(program, calls=program.calls[begin:end])
        for name, program in request.driven.items()
    }
    calls = [call for program in driven.values() for call in program.calls]
    return dict(sorted({**driven, **_loaded(request.manifest, calls)}.items()))


def _loaded(manifest: Manifest, driven: Iterable[Call]) -> dict[str, Program]:
    """The calls of `once` and `derive` programs that the driven calls need, programs never empty.

    Taken backwards in the order they run (derive before once, each by name), so that a call kept
    for a later program's sake is found.
    """
    needed = {region for call in driven for region in _read(manifest, call)}
    kept: dict[str, Program] = {}
    for name, program in reversed(_load_order(manifest)):
        calls = []
        for call in reversed(program.calls):
            if needed & {t.region for t in touches(manifest.ops, call) if t.writes}:
                calls.append(call)
                needed |= _read(manifest, call)
        if calls:
            kept[name] = replace(program, calls=tuple(reversed(calls)))
    return kept


def _load_order(manifest: Manifest) -> list[tuple[str, Program]]:
    programs = sorted(manifest.programs.items())
    derive = [(name, program) for name, program in programs if program.derive]
    return derive + [(name, program) for name, program in programs if program.once]


def _read(manifest: Manifest, call: Call) -> set[Region]:
    return {touch.region for touch in touches(manifest.ops, call) if touch.reads}
