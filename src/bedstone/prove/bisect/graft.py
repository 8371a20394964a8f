"""Some of B's changes in A's manifest. Pure.

A change is an op that B implements otherwise, or all stretches in which B puts the same other ops
in the place of A's. Such a stretch keeps A's places where the rest of the program meets it; what it
keeps to itself lies in buffers of its own, so that nothing of A's is overwritten.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from bedstone.prove.swap.diff import Diff, Span
from bedstone.prove.swap.frontier import Place
from bedstone.spec.manifest import (
    Arg,
    BufArg,
    Buffer,
    Call,
    KernelLaunch,
    Manifest,
    Module,
    Op,
    Program,
)

_PREFIX = "b."
"""What is of B has this before its name where A has another of that name."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Ops that B implements otherwise, stretches by what they do, and why others cannot be told."""

    ops: tuple[str, ...]
    spans: Mapping[str, tuple[Span, ...]]
    fixed: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Every change that can be made alone."""
        return (*self.ops, *self.spans)


def changes_of(found: Diff) -> Changes:
    """What of a diff can be taken apart."""
    other = {change.op for change in found.ops if change.change != "impl"}
    spans: dict[str, list[Span]] = {}
    fixed: dict[str, None] = {}
    for span in found.spans:
        if span.a.ops == span.b.ops and not other & set(span.a.ops):
            continue
        if span.mismatch:
            fixed[f"{span}: {span.mismatch[0]}"] = None
        else:
            spans.setdefault(spelled(span), []).append(span)
    ops = tuple(change.op for change in found.ops if change.change == "impl")
    return Changes(ops, {name: tuple(held) for name, held in spans.items()}, tuple(fixed))


def spelled(span: Span) -> str:
    """What a stretch puts in the place of what."""
    mine, theirs = ("+".join(ops) or "nothing" for ops in (span.a.ops, span.b.ops))
    return f"{mine} -> {theirs}"


def graft(a: Manifest, b: Manifest, changes: Changes, chosen: frozenset[str]) -> Manifest:
    """A's manifest with the chosen changes of B."""
    made = _Graft(a, b)
    for name in changes.ops:
        if name in chosen:
            made.ops[name] = made.adopted(b.ops[name])
    for name in chosen & changes.spans.keys():
        for span in changes.spans[name]:
            made.take(span)
    return made.manifest()


@dataclass(slots=True)
class _Graft:
    """The manifest as it becomes."""

    a: Manifest
    b: Manifest
    ops: dict[str, Op] = field(default_factory=dict)
    modules: dict[str, Module] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    spans: dict[str, list[Span]] = field(default_factory=dict)
    calls: dict[tuple[str, int], tuple[Call, ...]] = field(default_factory=dict)

    def adopted(self, op: Op) -> Op:
        """An op of B whose modules are found in the new manifest."""
        launches = tuple(
            replace(launch, module=self._module(launch.module))
            if isinstance(launch, KernelLaunch)
            else launch
            for launch in op.impl.launches
        )
        return replace(op, impl=replace(op.impl, launches=launches))

    def take(self, span: Span) -> None:
        """B's calls in the place of A's."""
        meets = span.a.frontier.reads | span.a.frontier.writes
        calls = self.b.programs[span.program].calls[span.b.start : span.b.stop]
        self.calls[span.program, span.index] = tuple(self._call(call, meets) for call in calls)
        self.spans.setdefault(span.program, []).append(span)

    def manifest(self) -> Manifest:
        """All of it together."""
        programs = self._programs()
        ops = _called({**self.a.ops, **self.ops}, programs)
        return replace(
            self.a,
            ops=ops,
            modules=_launched({**self.a.modules, **self.modules}, ops),
            buffers=_passed({**self.a.buffers, **self.buffers}, programs),
            programs=programs,
        )

    def _programs(self) -> dict[str, Program]:
        return {
            name: replace(program, calls=tuple(self._spliced(name, program.calls)))
            for name, program in self.a.programs.items()
        }

    def _spliced(self, name: str, calls: tuple[Call, ...]) -> Iterator[Call]:
        at = 0
        for span in sorted(self.spans.get(name, ()), key=lambda span: span.a.start):
            yield from calls[at : span.a.start]
            yield from self.calls[name, span.index]
            at = span.a.stop
        yield from calls[at:]

    def _call(self, call: Call, meets: frozenset[Place]) -> Call:
        op = self.adopted(self.b.ops[call.op])
        name = call.op if self.a.ops.get(call.op, op) == op else _PREFIX + call.op
        self.ops[name] = op
        return replace(call, op=name, args=tuple(self._arg(arg, meets) for arg in call.args))

    def _arg(self, arg: Arg, meets: frozenset[Place]) -> Arg:
        if not isinstance(arg, BufArg) or Place("buffer", arg.buf, arg.offset) in meets:
            return arg
        theirs = self.b.buffers[arg.buf]
        if theirs.kind != "workspace" and self.a.buffers.get(arg.buf, theirs) == theirs:
            self.buffers[arg.buf] = theirs
            return arg
        self.buffers[_PREFIX + arg.buf] = theirs
        return replace(arg, buf=_PREFIX + arg.buf)

    def _module(self, label: str) -> str:
        theirs = self.b.modules[label]
        name = label if self.a.modules.get(label, theirs) == theirs else _PREFIX + label
        self.modules[name] = theirs
        return name


def _called(ops: Mapping[str, Op], programs: Mapping[str, Program]) -> dict[str, Op]:
    """The ops that some call names: what B's calls took the place of may be none."""
    called = {call.op for program in programs.values() for call in program.calls}
    return {name: op for name, op in ops.items() if name in called}


def _launched(modules: Mapping[str, Module], ops: Mapping[str, Op]) -> dict[str, Module]:
    """The modules that some op launches from."""
    launches = [launch for op in ops.values() for launch in op.impl.launches]
    used = {launch.module for launch in launches if isinstance(launch, KernelLaunch)}
    return {label: module for label, module in modules.items() if label in used}


def _passed(buffers: Mapping[str, Buffer], programs: Mapping[str, Program]) -> dict[str, Buffer]:
    """The buffers but for those that nobody outside knows and no call is given."""
    calls = [call for program in programs.values() for call in program.calls]
    given = {arg.buf for call in calls for arg in call.args if isinstance(arg, BufArg)}
    return {
        name: buffer
        for name, buffer in buffers.items()
        if name in given or buffer.kind not in {"workspace", "weight"}
    }
