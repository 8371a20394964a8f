"""The subjects of a call's rules: the call, its op, each argument with its parameter."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bedstone.spec.manifest import Arg, Call, Op, ParamType, Program
from bedstone.verify.binding import call_bindings
from bedstone.verify.dataflow import Moment, program_writes
from bedstone.verify.facts import Facts, Named, OpFacts
from bedstone.verify.rule import Place


@dataclass(frozen=True, slots=True)
class CallSite:
    """One call of a program; `first_writes` is by buffer, over the whole program."""

    program: Named[Program]
    first_writes: Mapping[str, Moment]
    index: int
    call: Call

    @property
    def facts(self) -> Facts:
        """The manifest's facts."""
        return self.program.facts

    @property
    def place(self) -> Place:
        """The call's own place."""
        label = "" if self.call.label is None else f" ({self.call.label})"
        return self.program.place.inner(f"call #{self.index}{label}", f"/calls/{self.index}")


@dataclass(frozen=True, slots=True)
class Resolved:
    """A call of an op that exists."""

    site: CallSite
    op: Op
    facts: OpFacts


@dataclass(frozen=True, slots=True)
class CallArg:
    """One argument of a call and the parameter it meets."""

    call: Resolved
    index: int
    param: ParamType
    arg: Arg

    @property
    def facts(self) -> Facts:
        """The manifest's facts."""
        return self.call.site.facts

    @property
    def place(self) -> Place:
        """The argument's own place."""
        return self.call.site.place.inner(f"arg #{self.index}", f"/args/{self.index}")


def each_call(program: Named[Program]) -> Iterator[CallSite]:
    """The program's calls in order."""
    first_writes = program_writes(program.facts.manifest.ops, program.value)
    for index, call in enumerate(program.value.calls):
        yield CallSite(program, first_writes, index, call)


def as_resolved(site: CallSite) -> Iterator[Resolved]:
    """The call with its op, when the op exists."""
    op = site.facts.manifest.ops.get(site.call.op)
    if op is not None:
        yield Resolved(site, op, site.facts.ops[site.call.op])


def each_arg(call: Resolved) -> Iterator[CallArg]:
    """The call's arguments in order, when there are as many as parameters."""
    for index, (param, arg) in enumerate(call_bindings(call.op, call.site.call)):
        yield CallArg(call, index, param, arg)
