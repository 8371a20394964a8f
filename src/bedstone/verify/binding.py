"""How parameters meet arguments: a launch's over its op, a call's over the op it names.

A launch without `params` has its op's interface, one without `args` forwards the interface in
order. Where the counts differ nothing is bound, so nothing downstream looks at the arguments.
"""

from bedstone.spec.manifest import (
    F32,
    I32,
    I64,
    U8,
    Arg,
    BufferParam,
    Call,
    Launch,
    LaunchArg,
    Op,
    ParamArg,
    ParamType,
    ScalarParam,
    ScalarType,
    StateParam,
)

Literal = I32 | I64 | F32 | U8

LITERAL_TYPES: dict[type[Literal], ScalarType] = {I32: "i32", I64: "i64", F32: "f32", U8: "u8"}


def launch_params(op: Op, launch: Launch) -> tuple[ParamType, ...]:
    """The launch's own parameters, else the op's."""
    return op.params if launch.params is None else launch.params


def launch_args(op: Op, launch: Launch) -> tuple[LaunchArg, ...]:
    """The launch's own arguments, else the op's parameters in order."""
    if launch.args is not None:
        return launch.args
    return tuple(ParamArg(index) for index in range(len(op.params)))


def launch_bindings(op: Op, launch: Launch) -> tuple[tuple[ParamType, LaunchArg], ...]:
    """Each parameter with its argument; empty when the counts differ."""
    params, args = launch_params(op, launch), launch_args(op, launch)
    return tuple(zip(params, args, strict=True)) if len(params) == len(args) else ()


def call_bindings(op: Op, call: Call) -> tuple[tuple[ParamType, Arg], ...]:
    """Each parameter with its argument; empty when the counts differ."""
    if len(op.params) != len(call.args):
        return ()
    return tuple(zip(op.params, call.args, strict=True))


def direction(param: ParamType) -> str | None:
    """Which way a pointer parameter goes; None for a parameter passed by value."""
    return param.direction if isinstance(param, BufferParam | StateParam) else None


def writes(param: ParamType) -> bool:
    """Whether the parameter is written through."""
    return direction(param) in {"out", "inout"}


def reads(param: ParamType) -> bool:
    """Whether the parameter is read through."""
    return direction(param) in {"in", "inout"}


def interface(op: Op, index: int) -> ParamType | None:
    """The op's parameter of that index, or None past the end."""
    return op.params[index] if index < len(op.params) else None


def same_kind(interface_param: ParamType | None, launch_param: ParamType) -> bool:
    """Whether an interface parameter can be forwarded to a launch parameter, direction aside."""
    match interface_param, launch_param:
        case BufferParam(), BufferParam():
            return interface_param.dtype == launch_param.dtype
        case StateParam(), StateParam():
            return True
        case ScalarParam(), ScalarParam():
            return interface_param == launch_param
        case _:
            return False


def literal_type(literal: Literal) -> ScalarType:
    """The scalar type a literal is of."""
    return LITERAL_TYPES[type(literal)]


def takes_rank(param: ParamType) -> bool:
    """Whether a rank can be bound to the parameter."""
    return isinstance(param, ScalarParam) and param.type in {"i32", "i64"}
