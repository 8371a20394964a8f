"""What a call touches, and which buffers are live between two calls."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bedstone.spec.manifest import BufArg, Call, Op, StateArg
from bedstone.verify.binding import call_bindings, reads, writes


@dataclass(frozen=True, slots=True)
class Region:
    """Memory that one argument binds: a whole buffer, or a state from a byte offset on."""

    kind: str
    name: str
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.kind} `{self.name}`" + (f"+{self.offset}" if self.kind == "state" else "")


@dataclass(frozen=True, slots=True)
class Touch:
    """One argument of a call: what it binds, how, and whether it writes all of it anew."""

    region: Region
    reads: bool
    writes: bool
    renews: bool


def touches(ops: Mapping[str, Op], call: Call) -> Iterator[Touch]:
    """The buffers and states a call binds, argument by argument.

    An `out` at offset 0 of a buffer counts as writing all of it: extents are the kernel's secret.
    """
    for param, arg in call_bindings(ops[call.op], call):
        read, written = reads(param), writes(param)
        if isinstance(arg, BufArg):
            renews = written and not read and arg.offset == 0
            yield Touch(Region("buffer", arg.buf), read, written, renews)
        elif isinstance(arg, StateArg):
            yield Touch(Region("state", arg.state, arg.offset), read, written, renews=False)


def live(ops: Mapping[str, Op], calls: Iterable[Call]) -> frozenset[str]:
    """The buffers that `calls` read before they write them anew."""
    read, renewed = set(), set()
    for call in calls:
        for touch in touches(ops, call):
            name = touch.region.name
            if touch.region.kind == "buffer" and touch.reads and name not in renewed:
                read.add(name)
            if touch.renews:
                renewed.add(name)
    return frozenset(read)


def written(ops: Mapping[str, Op], calls: Iterable[Call]) -> frozenset[str]:
    """The buffers that `calls` write."""
    return frozenset(
        touch.region.name
        for call in calls
        for touch in touches(ops, call)
        if touch.region.kind == "buffer" and touch.writes
    )
