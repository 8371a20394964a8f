"""Expressions: their values, the three ways to have none, and the vars they read."""

import pytest

from bedstone.spec.expr import U64_MAX, ExprError, evaluate, names, reads
from bedstone.spec.manifest import Add, CeilDiv, Clamp, Expr, Mul

ENV = {"n": 10, "m": 3}


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        (0, 0),
        (U64_MAX, U64_MAX),
        ("n", 10),
        (CeilDiv("n", 3), 4),
        (CeilDiv("n", 5), 2),
        (CeilDiv(0, 5), 0),
        (CeilDiv(1, U64_MAX), 1),
        (Mul("n", 0), 0),
        (Mul(CeilDiv("n", 4), 2), 6),
        (Add("n", "m"), 13),
        (Clamp("n", 4, 4), 4),
        (Clamp("n", 8, 4), 2),
        (Clamp("n", 12, 4), 0),
        (Clamp("n", U64_MAX, U64_MAX), 0),
    ],
)
def test_value(expr: Expr, value: int) -> None:
    assert evaluate(expr, ENV) == value


@pytest.mark.parametrize(
    ("expr", "reason"),
    [
        (CeilDiv(2, U64_MAX), "arithmetic overflow"),
        (CeilDiv(U64_MAX, 2**63), "arithmetic overflow"),
        (Mul("n", 2**63), "arithmetic overflow"),
        (Add(U64_MAX, "m"), "arithmetic overflow"),
        (Clamp(Add(U64_MAX, 1), 0, 1), "arithmetic overflow"),
        (CeilDiv("n", 0), "division by zero"),
        (CeilDiv("q", 0), "unknown var `q`"),
        (Add("n", "q"), "unknown var `q`"),
    ],
)
def test_no_value(expr: Expr, reason: str) -> None:
    with pytest.raises(ExprError, match=reason):
        evaluate(expr, ENV)


def test_vars_are_read_left_to_right() -> None:
    expr = Add(Mul(CeilDiv("b", 2), 3), Add(Clamp("a", 0, 1), Add("b", 7)))
    assert list(names(expr)) == ["b", "a", "b"]
    assert reads(expr) == {"a", "b"}
    assert reads(3) == frozenset()
