"""Call arguments passed by value, and arguments of the wrong kind."""

from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.spec.manifest import (
    F32,
    I32,
    I64,
    U8,
    Arg,
    BufArg,
    BufferParam,
    Expr,
    ExprArg,
    ParamType,
    Rank,
    ScalarParam,
    ScalarType,
    StateArg,
    StateParam,
    VarArg,
)
from bedstone.verify.binding import literal_type, takes_rank
from bedstone.verify.callsite import CallArg
from bedstone.verify.expressions import EXPR_ROWS, ExprSite
from bedstone.verify.rule import Each, Finding, Rows, Rule
from bedstone.verify.sizes import value_at
from bedstone.verify.topology import GROUP_USE_ROWS, GroupUse

SCALAR_MAX = {"i32": 2**31 - 1, "i64": 2**63 - 1, "u8": 255}


@dataclass(frozen=True, slots=True)
class VarUse:
    """A var bound to a scalar parameter; `max` is None when the var does not exist."""

    arg: CallArg
    var: str
    type: ScalarType
    max: int | None


@dataclass(frozen=True, slots=True)
class ExprUse:
    """An expression bound to a scalar parameter."""

    arg: CallArg
    expr: Expr
    type: ScalarType


def as_var(arg: CallArg) -> Iterator[VarUse]:
    """The var bound, when it is one and the parameter is a scalar."""
    if isinstance(arg.arg, VarArg) and isinstance(arg.param, ScalarParam):
        name = arg.arg.var
        yield VarUse(arg, name, arg.param.type, arg.facts.upper.get(name))


def var_known(use: VarUse) -> Iterator[Finding]:
    """A var bound to a parameter exists."""
    if use.max is None:
        yield use.arg.place.finding(f"names unknown var `{use.var}`", f"var {use.var}", at="/var")


def var_is_an_integer(use: VarUse) -> Iterator[Finding]:
    """A var is bound to an integer."""
    if use.max is not None and use.type == "f32":
        yield use.arg.place.finding(
            f"binds var `{use.var}` to `f32`, expected an integer parameter",
            f"var {use.var}",
            at="/var",
        )


def var_in_range(use: VarUse) -> Iterator[Finding]:
    """A var's max fits the parameter."""
    limit = SCALAR_MAX.get(use.type)
    if use.max is not None and limit is not None and use.max > limit:
        yield use.arg.place.finding(
            f"is var `{use.var}` of max {use.max}, expected at most {limit} for `{use.type}`",
            f"var {use.var}",
            at="/var",
        )


def as_expr(arg: CallArg) -> Iterator[ExprUse]:
    """The expression bound, when it is one and the parameter is a scalar."""
    if isinstance(arg.arg, ExprArg) and isinstance(arg.param, ScalarParam):
        yield ExprUse(arg, arg.arg.expr, arg.param.type)


def expr_nodes(use: ExprUse) -> Iterator[ExprSite]:
    """The expression to check for itself."""
    yield ExprSite(use.arg.facts, use.arg.place.inner("expression", "/expr"), use.expr)


def expr_is_an_integer(use: ExprUse) -> Iterator[Finding]:
    """An expression is bound to an integer."""
    if use.type == "f32":
        yield use.arg.place.finding(
            "binds an expression to `f32`, expected an integer parameter", at="/expr"
        )


def expr_in_range(use: ExprUse) -> Iterator[Finding]:
    """An expression fits the parameter with every var at its max."""
    value, limit = value_at(use.expr, use.arg.facts.upper), SCALAR_MAX.get(use.type)
    if value is not None and limit is not None and value > limit:
        yield use.arg.place.finding(
            f"reaches {value} with every var at its max, expected at most {limit} for `{use.type}`",
            at="/expr",
        )


def rank_group(arg: CallArg) -> Iterator[GroupUse]:
    """The group whose rank is bound to an integer, if one is."""
    if isinstance(arg.arg, Rank) and takes_rank(arg.param):
        yield GroupUse(arg.facts, arg.place, arg.arg.group)


def kinds_match(arg: CallArg) -> Iterator[Finding]:
    """An argument is of a kind its parameter takes."""
    if not _takes(arg.param, arg.arg):
        text, *objects = _described(arg.arg)
        yield arg.place.finding(f"is {text}, expected an argument for `{arg.param}`", *objects)


def _takes(param: ParamType, arg: Arg) -> bool:
    match arg:
        case BufArg():
            return isinstance(param, BufferParam)
        case StateArg():
            return isinstance(param, StateParam)
        case VarArg() | ExprArg():
            return isinstance(param, ScalarParam)
        case Rank():
            return param in (ScalarParam("i32"), ScalarParam("i64"))
        case I32() | I64() | F32() | U8():
            return param == ScalarParam(literal_type(arg))


def _described(arg: Arg) -> tuple[str, ...]:
    match arg:
        case BufArg(buf=name):
            return f"buffer `{name}`", f"buffer {name}"
        case StateArg(state=name):
            return f"state `{name}`", f"state {name}"
        case VarArg(var=name):
            return f"var `{name}`", f"var {name}"
        case Rank(group=name):
            return f"the rank in `{name}`", f"group {name}"
        case ExprArg():
            return ("an expression",)
        case I32() | I64() | F32() | U8():
            return (f"the {literal_type(arg)} literal {arg.value}",)


SCALAR_ROWS: Rows[CallArg] = (
    Each(
        as_var,
        (
            Rule("Z14", "calls", var_known),
            Rule("Z15", "calls", var_is_an_integer),
            Rule("Z16", "calls", var_in_range),
        ),
    ),
    Each(
        as_expr,
        (
            Each(expr_nodes, EXPR_ROWS),
            Rule("Z17", "calls", expr_is_an_integer),
            Rule("Z18", "calls", expr_in_range),
        ),
    ),
    Each(rank_group, GROUP_USE_ROWS),
    Rule("Z19", "calls", kinds_match),
)
