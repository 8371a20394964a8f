"""Expressions are well formed: their vars exist and their constants make sense."""

from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.spec.manifest import Add, CeilDiv, Clamp, Expr, Mul
from bedstone.verify.facts import Facts
from bedstone.verify.rule import Each, Finding, Place, Rows, Rule


@dataclass(frozen=True, slots=True)
class ExprSite:
    """An expression, or a node of one."""

    facts: Facts
    place: Place
    expr: Expr


def each_node(site: ExprSite) -> Iterator[ExprSite]:
    """The expression's nodes: an operator before its operands, left before right."""
    yield site
    match site.expr:
        case CeilDiv(value=value):
            yield from each_node(_operand(site, value, "/ceil_div/0"))
        case Mul(value=value):
            yield from each_node(_operand(site, value, "/mul/0"))
        case Clamp(value=value):
            yield from each_node(_operand(site, value, "/clamp/0"))
        case Add(left=left, right=right):
            yield from each_node(_operand(site, left, "/add/0"))
            yield from each_node(_operand(site, right, "/add/1"))
        case int() | str():
            return


def _operand(site: ExprSite, expr: Expr, pointer: str) -> ExprSite:
    place = site.place
    return ExprSite(site.facts, Place(place.text, place.path + pointer, place.objects), expr)


def known_var(site: ExprSite) -> Iterator[Finding]:
    """A name in an expression is a var."""
    if isinstance(site.expr, str) and site.expr not in site.facts.upper:
        yield site.place.finding(f"names unknown var `{site.expr}`", f"var {site.expr}")


def nonzero_divisor(site: ExprSite) -> Iterator[Finding]:
    """`ceil_div` divides by at least 1."""
    if isinstance(site.expr, CeilDiv) and site.expr.by == 0:
        yield site.place.finding("divides by 0, expected at least 1", at="/ceil_div/1")


def nonzero_factor(site: ExprSite) -> Iterator[Finding]:
    """`mul` multiplies by at least 1."""
    if isinstance(site.expr, Mul) and site.expr.by == 0:
        yield site.place.finding("multiplies by 0, expected at least 1", at="/mul/1")


EXPR_ROWS: Rows[ExprSite] = (
    Each(
        each_node,
        (
            Rule("E1", "expressions", known_var),
            Rule("E2", "expressions", nonzero_divisor),
            Rule("E3", "expressions", nonzero_factor),
        ),
    ),
)
