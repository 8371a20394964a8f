"""What differs between two manifests of one model, and where each difference begins and ends.

Pure. Ops are held against each other with modules by hash, so one that was rebuilt counts as
changed. A program's calls are aligned by their longest common subsequence, in which a call of a
changed op matches nothing; what is left over between two matches is a *span*, or one for each call
where only kernels are others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from bedstone.prove.swap.frontier import Flow, Frontier
from bedstone.spec.manifest import (
    BufArg,
    Call,
    Impl,
    KernelLaunch,
    Manifest,
    Op,
    State,
)

_KNOWN = frozenset({"input", "output", "inout", "carry"})
"""Kinds of buffers that a caller knows, or that one program leaves to another."""

Change = Literal["interface", "impl", "added", "removed"]


@dataclass(frozen=True, slots=True)
class OpChange:
    """How an op of A differs in B."""

    op: str
    change: Change


@dataclass(frozen=True, slots=True)
class Side:
    """Calls [start, stop) of one manifest's program, and what they share with the rest of it."""

    start: int
    stop: int
    ops: tuple[str, ...]
    frontier: Frontier


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch that differs; `index` counts those of a program.

    `resized` are states that it touches and that A and B keep in other sizes.
    """

    program: str
    index: int
    a: Side
    b: Side
    resized: tuple[str, ...] = ()

    @property
    def mismatch(self) -> tuple[str, ...]:
        """Why B's stretch cannot be run in A's place."""
        lacks = self.b.frontier.reads - self.a.frontier.reads
        writes = self.a.frontier.writes ^ self.b.frontier.writes
        return (
            *(f"B reads {place}, A does not" for place in sorted(lacks)),
            *(f"only one of A and B writes {place}" for place in sorted(writes)),
            *(f"B keeps state `{name}` in another size" for name in self.resized),
        )

    def __str__(self) -> str:
        return f"{self.program}#{self.index} calls [{self.a.start}, {self.a.stop})"


@dataclass(frozen=True, slots=True)
class Diff:
    """Everything that differs; `apart` are differences that leave nothing to compare.

    `resized` says of each state that A and B keep in other sizes what these are: what it holds is
    not compared, and what is made of it is.
    """

    ops: tuple[OpChange, ...]
    spans: tuple[Span, ...]
    apart: tuple[str, ...]
    resized: Mapping[str, str] = field(default_factory=dict)

    @property
    def identical(self) -> bool:
        """Whether a run of B is a run of A."""
        return not (self.ops or self.spans or self.apart or self.resized)


def diff(a: Manifest, b: Manifest) -> Diff:
    """What differs from A in B; both are verified."""
    ops = tuple(_op_changes(a, b))
    changed = {change.op: change.change for change in ops}
    shared = sorted(a.programs.keys() & b.programs.keys())
    resized = dict(_resized(a, b))
    spans = (span for name in shared for span in _spans(name, a, b, changed))
    return Diff(
        ops=ops,
        spans=tuple(replace(span, resized=_touched(span, resized)) for span in spans),
        apart=tuple(_apart(a, b)),
        resized=resized,
    )


def _touched(span: Span, states: Iterable[str]) -> tuple[str, ...]:
    """Those of the states that either side of a span reads or writes."""
    frontiers = (span.a.frontier, span.b.frontier)
    places = {place for each in frontiers for place in each.reads | each.written}
    named = {place.name for place in places if place.kind == "state"}
    return tuple(sorted(named.intersection(states)))


def _resized(a: Manifest, b: Manifest) -> Iterator[tuple[str, str]]:
    """States that both have and that differ in bytes alone, and how."""
    for name in sorted(a.states.keys() & b.states.keys()):
        mine, theirs = a.states[name], b.states[name]
        if mine != theirs and _unsized(mine) == _unsized(theirs):
            yield name, f"{_size(mine)}, in B {_size(theirs)}"


def _unsized(state: State) -> State:
    """A state with its kind of size, and no number of bytes."""
    sizes = state.bytes_per_token, state.bytes, state.bytes_per_seq
    token, whole, seq = map(bool, sizes)
    return replace(state, bytes_per_token=token, bytes=whole, bytes_per_seq=seq)


def _size(state: State) -> str:
    if state.bytes_per_token:
        return f"{state.bytes_per_token} bytes a token"
    return f"{state.bytes_per_seq or state.bytes} bytes"


def _apart(a: Manifest, b: Manifest) -> Iterator[str]:
    """Differences in what a caller of either would have to know."""
    states = [{n: _unsized(s) for n, s in each.states.items()} for each in (a, b)]
    for what, mine, theirs in (("vars", a.vars, b.vars), ("states", *states)):
        if mine != theirs:
            yield f"the {what}"
    for name in sorted(a.buffers.keys() | b.buffers.keys()):
        pair = a.buffers.get(name), b.buffers.get(name)
        if pair[0] != pair[1] and any(x is not None and x.kind in _KNOWN for x in pair):
            yield f"buffer `{name}`"
    yield from (f"program `{name}`" for name in sorted(a.programs.keys() ^ b.programs.keys()))
    for name in sorted(a.programs.keys() & b.programs.keys()):
        if replace(a.programs[name], calls=()) != replace(b.programs[name], calls=()):
            yield f"the shape of program `{name}`"


def _op_changes(a: Manifest, b: Manifest) -> Iterator[OpChange]:
    for name in sorted(a.ops.keys() | b.ops.keys()):
        mine, theirs = a.ops.get(name), b.ops.get(name)
        if mine is None:
            yield OpChange(name, "added")
        elif theirs is None:
            yield OpChange(name, "removed")
        elif mine.params != theirs.params:
            yield OpChange(name, "interface")
        elif _impl(a, mine) != _impl(b, theirs):
            yield OpChange(name, "impl")


def _impl(manifest: Manifest, op: Op) -> Impl:
    """The implementation with each module by its hash."""
    launches = tuple(
        replace(launch, module=manifest.modules[launch.module].sha256)
        if isinstance(launch, KernelLaunch)
        else launch
        for launch in op.impl.launches
    )
    return Impl(launches, dict(op.impl.scratch))


def _spans(name: str, a: Manifest, b: Manifest, changed: Mapping[str, Change]) -> Iterator[Span]:
    mine, theirs = a.programs[name].calls, b.programs[name].calls
    flows = Flow(a, name), Flow(b, name)
    keys_a = [_key(a, call, changed) for call in mine]
    keys_b = [_key(b, call, changed) for call in theirs]
    stretches = [
        cut
        for stretch in _between(align(keys_a, keys_b), len(mine), len(theirs))
        for cut in _cut(stretch, (a, b), name, changed)
    ]
    for index, ((i, stop_a), (j, stop_b)) in enumerate(stretches):
        of_a = _side(mine, flows[0], i, stop_a)
        yield Span(name, index, of_a, _side(theirs, flows[1], j, stop_b))


Stretches = tuple[tuple[int, int], tuple[int, int]]
"""Calls [start, stop) of A, and those of B in their place."""


def _between(pairs: Iterable[tuple[int, int]], n: int, m: int) -> Iterator[Stretches]:
    """What is left between calls that match."""
    at_a = at_b = 0
    for i, j in (*pairs, (n, m)):
        if i > at_a or j > at_b:
            yield (at_a, i), (at_b, j)
        at_a, at_b = i + 1, j + 1


def _cut(
    stretch: Stretches, sides: tuple[Manifest, Manifest], name: str, changed: Mapping[str, Change]
) -> Iterator[Stretches]:
    """Call by call where each is of the same op on the same places and only its kernel is another.

    A kernel is then held against the one whose place it takes, however many others changed.
    """
    (i, stop_a), (j, stop_b) = stretch
    mine, theirs = (
        [_place(side, call) for call in side.programs[name].calls[start:stop]]
        for side, (start, stop) in zip(sides, stretch, strict=True)
    )
    called = (call.op for call in sides[0].programs[name].calls[i:stop_a])
    if mine == theirs and all(changed.get(op) == "impl" for op in called):
        yield from (((i + at, i + at + 1), (j + at, j + at + 1)) for at in range(stop_a - i))
    else:
        yield (i, stop_a), (j, stop_b)


def _side(calls: tuple[Call, ...], flow: Flow, start: int, stop: int) -> Side:
    ops = tuple(call.op for call in calls[start:stop])
    return Side(start, stop, ops, flow.frontier(start, stop))


def _key(manifest: Manifest, call: Call, changed: Mapping[str, Change]) -> str | None:
    """What a call must have in common with another; None matches nothing."""
    return None if call.op in changed else _place(manifest, call)


def _place(manifest: Manifest, call: Call) -> str:
    """The op of a call and all that it is called on."""
    buffers = [manifest.buffers[arg.buf] for arg in call.args if isinstance(arg, BufArg)]
    return repr((call.op, call.args, buffers))


def align(a: Sequence[str | None], b: Sequence[str | None]) -> list[tuple[int, int]]:
    """Index pairs of a longest common subsequence of keys [n] and [m]; None matches nothing."""
    ids: dict[str, int] = {}
    left, right = _numbered(a, ids, -1), _numbered(b, ids, -2)
    lengths = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left) - 1, -1, -1):
        below, row = lengths[i + 1], lengths[i]
        for j in range(len(right) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if left[i] == right[j] else max(below[j], row[j + 1])
    return list(_walk(left, right, lengths))


def _numbered(keys: Sequence[str | None], ids: dict[str, int], none: int) -> list[int]:
    return [none if key is None else ids.setdefault(key, len(ids)) for key in keys]


def _walk(left: list[int], right: list[int], lengths: list[list[int]]) -> Iterator[tuple[int, int]]:
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            yield i, j
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] > lengths[i][j + 1]:
            i += 1
        elif lengths[i + 1][j] < lengths[i][j + 1]:
            j += 1
        # changed calls pair up with changed calls, so that spans stay short
        else:
            i, j = _passed(i, j, left, right, lengths)


def _passed(
    i: int, j: int, left: list[int], right: list[int], lengths: list[list[int]]
) -> tuple[int, int]:
    """Where to go on from two calls that do not match and may both be left out, or one."""
    if lengths[i + 1][j + 1] == lengths[i][j]:
        return i + 1, j + 1
    return (i + 1, j) if left[i] < 0 or right[j] >= 0 else (i, j + 1)


def programs_changed(found: Diff) -> Mapping[str, tuple[Span, ...]]:
    """The spans of each program that has any, in order."""
    names = sorted({span.program for span in found.spans})
    return {name: tuple(s for s in found.spans if s.program == name) for name in names}
