"""Who writes first: the earliest write of each thing an op or a program touches.

A *moment* is (launch, argument) within an op and (call, argument) within a program; arguments are
taken left to right. A read at moment m is sound when the first write stands before m.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bedstone.spec.manifest import (
    BufArg,
    BufferParam,
    LaunchArg,
    Op,
    Pack,
    ParamArg,
    ParamType,
    Program,
    ScratchArg,
    TensorMap,
)
from bedstone.verify.binding import call_bindings, interface, launch_bindings, same_kind, writes

Moment = tuple[int, int]


@dataclass(frozen=True, slots=True)
class OpFlow:
    """First writes within one run of an op."""

    params: Mapping[int, Moment]
    scratch: Mapping[str, Moment]


def op_flow(op: Op) -> OpFlow:
    """The first write of each interface parameter and each scratch, `when` or not."""
    first: dict[int | str, Moment] = {}
    for i, launch in enumerate(op.impl.launches):
        for j, (param, arg) in enumerate(launch_bindings(op, launch)):
            for written in _launch_writes(op, param, arg):
                first.setdefault(written, (i, j))
    return OpFlow(
        {key: at for key, at in first.items() if isinstance(key, int)},
        {key: at for key, at in first.items() if isinstance(key, str)},
    )


def _launch_writes(op: Op, param: ParamType, arg: LaunchArg) -> Iterator[int | str]:
    if isinstance(arg, Pack):
        yield from _pack_writes(op, arg)
    elif isinstance(arg, ParamArg) and writes(param) and same_kind(interface(op, arg.param), param):
        yield arg.param
    elif isinstance(arg, ScratchArg) and isinstance(param, BufferParam) and writes(param):
        yield arg.scratch


def _pack_writes(op: Op, pack: Pack) -> Iterator[int | str]:
    # A pack hides the direction of its pointers: whatever it can write counts as written.
    for field in pack.fields:
        if isinstance(field.source, ScratchArg):
            yield field.source.scratch
        elif isinstance(field.source, ParamArg | TensorMap):
            param = interface(op, field.source.param)
            if param is not None and writes(param):
                yield field.source.param


def program_writes(ops: Mapping[str, Op], program: Program) -> dict[str, Moment]:
    """The first write of each buffer name a program's calls bind, refused or not."""
    first: dict[str, Moment] = {}
    for i, call in enumerate(program.calls):
        op = ops.get(call.op)
        for j, (param, arg) in enumerate(call_bindings(op, call) if op else ()):
            if isinstance(arg, BufArg) and isinstance(param, BufferParam) and writes(param):
                first.setdefault(arg.buf, (i, j))
    return first
