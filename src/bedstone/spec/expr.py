"""What an expression over vars is worth, in checked u64, and which vars it reads."""

from collections.abc import Iterator, Mapping
from typing import assert_never

from bedstone.errors import ManifestError
from bedstone.spec.manifest import Add, CeilDiv, Clamp, Expr, Mul

U64_MAX = 2**64 - 1


class ExprError(ManifestError):
    """An expression has no value under an environment; the message is one of three reasons."""


def evaluate(expr: Expr, env: Mapping[str, int]) -> int:
    """The value of `expr` with its vars read from `env`.

    `ceil_div(e, c)` is `(e + (c - 1)) / c`: its addition is checked like any other, so it can
    overflow where the quotient would fit. `clamp` saturates and cannot. An `ExprError` says
    `arithmetic overflow`, `division by zero` or which var is unknown.
    """
    match expr:
        case int():
            return _checked(expr)
        case str():
            return _read(expr, env)
        case CeilDiv(value, by):
            return _ceil_div(evaluate(value, env), by)
        case Mul(value, by):
            return _checked(evaluate(value, env) * by)
        case Add(left, right):
            return _checked(evaluate(left, env) + evaluate(right, env))
        case Clamp(value, start, length):
            return min(max(evaluate(value, env) - start, 0), length)
        case _:
            assert_never(expr)


def names(expr: Expr) -> Iterator[str]:
    """Every var `expr` reads, left to right, as often as it is read."""
    match expr:
        case int():
            return
        case str():
            yield expr
        case Add(left, right):
            yield from names(left)
            yield from names(right)
        case CeilDiv(value) | Mul(value) | Clamp(value):
            yield from names(value)
        case _:
            assert_never(expr)


def reads(expr: Expr) -> frozenset[str]:
    """The vars `expr` reads."""
    return frozenset(names(expr))


def _read(name: str, env: Mapping[str, int]) -> int:
    value = env.get(name)
    if value is None:
        raise ExprError(f"unknown var `{name}`")
    return _checked(value)


def _ceil_div(value: int, by: int) -> int:
    if by == 0:
        raise ExprError("division by zero")
    return _checked(value + (by - 1)) // by


def _checked(value: int) -> int:
    if not 0 <= value <= U64_MAX:
        raise ExprError("arithmetic overflow")
    return value
