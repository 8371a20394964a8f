"""What the manifest uses: the other half of every "never used" rule.

A buffer, state, var or group is used by a call only when the call's op exists and its counts
match; an op is called once its name resolves. Being indexed by a domain is not use.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bedstone.spec.expr import names
from bedstone.spec.manifest import (
    Arg,
    BufArg,
    Buffer,
    BufferParam,
    Dim,
    Domain,
    ExprArg,
    FieldSource,
    KernelLaunch,
    Launch,
    LaunchArg,
    Manifest,
    Op,
    Pack,
    ParamType,
    Program,
    Rank,
    RankedRanges,
    RankedTensors,
    ScalarParam,
    StateArg,
    StateParam,
    VarArg,
)
from bedstone.verify.bind import BOUND_KINDS
from bedstone.verify.binding import call_bindings, launch_bindings, takes_rank, writes

Use = tuple[str, str]
"""The kind of the thing used and its name."""


@dataclass(frozen=True, slots=True)
class Uses:
    """Everything used, as (kind, name); kind `written` is a buffer that some call writes."""

    found: frozenset[Use]

    @staticmethod
    def of(manifest: Manifest) -> "Uses":
        """What a manifest uses."""
        return Uses(frozenset(_all(manifest)))

    def unused(self, kind: str, declared: Iterable[str]) -> list[str]:
        """The declared names that nothing uses, in order."""
        return [name for name in sorted(declared) if (kind, name) not in self.found]


def _all(manifest: Manifest) -> Iterator[Use]:
    for state in manifest.states.values():
        if state.shard is not None:
            yield ("group", state.shard.group)
    for name, buffer in manifest.buffers.items():
        yield from _by_buffer(buffer)
        if buffer.kind == "peer":
            yield from _by_peer(manifest, name, buffer)
    for op in manifest.ops.values():
        yield from _by_op(op)
    for program in manifest.programs.values():
        yield from _by_program(manifest, program)


def _by_buffer(buffer: Buffer) -> Iterator[Use]:
    yield from _extents(buffer.shape)
    if buffer.domain is not None:
        yield from _bounds(buffer.domain)
    for segment in buffer.bind if buffer.kind in BOUND_KINDS else ():
        partner = segment.interleave.with_ if segment.interleave else None
        for choice in (segment.tensor, partner, segment.rows, segment.cols):
            if isinstance(choice, RankedTensors | RankedRanges):
                yield ("group", choice.group)


def _by_peer(manifest: Manifest, name: str, peer: Buffer) -> Iterator[Use]:
    if peer.group is not None:
        yield ("group", peer.group)
    if peer.of is not None and peer.of != name:
        kinds = [
            kind
            for kind, section in (("buffer", manifest.buffers), ("state", manifest.states))
            if peer.of in section
        ]
        # A name that both sections have says which of them it means no better than an unknown one.
        if len(kinds) == 1:
            yield (kinds[0], peer.of)


def _extents(shape: tuple[Dim, ...]) -> Iterator[Use]:
    return (("var", dim) for dim in shape if isinstance(dim, str))


def _bounds(domain: Domain) -> Iterator[Use]:
    for bound in (domain.min, domain.max):
        if bound is not None and not isinstance(bound, float):
            yield from (("var", name) for name in names(bound))


def _by_op(op: Op) -> Iterator[Use]:
    for scratch in op.impl.scratch.values():
        yield from _extents(scratch.shape)
    for launch in op.impl.launches:
        yield from _by_launch(launch)
        for _, arg in launch_bindings(op, launch):
            for source in [f.source for f in arg.fields] if isinstance(arg, Pack) else [arg]:
                yield from _by_source(source)


def _by_launch(launch: Launch) -> Iterator[Use]:
    if launch.when is not None:
        yield ("var", launch.when.var)
    if isinstance(launch, KernelLaunch):
        yield ("module", launch.module)
        shared = () if launch.shared_mem is None else (launch.shared_mem,)
        for expr in (*launch.grid, *shared):
            yield from (("var", name) for name in names(expr))


def _by_source(source: Arg | LaunchArg | FieldSource) -> Iterator[Use]:
    match source:
        case VarArg(var=name):
            yield ("var", name)
        case ExprArg(expr=expr):
            yield from (("var", name) for name in names(expr))
        case Rank(group=name):
            yield ("group", name)
        case _:
            return


def _by_program(manifest: Manifest, program: Program) -> Iterator[Use]:
    if program.batch is not None:
        for name in (program.batch.rows, program.batch.context):
            if isinstance(name, str):
                yield ("var", name)
    for call in program.calls:
        op = manifest.ops.get(call.op)
        if op is not None:
            yield ("op", call.op)
            for param, arg in call_bindings(op, call):
                yield from _by_call_arg(param, arg)


def _by_call_arg(param: ParamType, arg: Arg) -> Iterator[Use]:
    match arg, param:
        case BufArg(buf=name), BufferParam():
            yield ("buffer", name)
            if writes(param):
                yield ("written", name)
        case StateArg(state=name), StateParam():
            yield ("state", name)
        case (VarArg() | ExprArg(), ScalarParam()):
            yield from _by_source(arg)
        case Rank(), _ if takes_rank(param):
            yield from _by_source(arg)
        case _:
            return
