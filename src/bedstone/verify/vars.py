"""Vars: their bounds and what they count."""

from collections.abc import Iterator
from typing import get_args

from bedstone.spec.manifest import Axis, Var
from bedstone.verify.facts import Facts, Named
from bedstone.verify.rule import Finding, Rows, Rule, listed


def max_at_least_one(var: Named[Var]) -> Iterator[Finding]:
    """A var's max is at least 1."""
    if var.value.max < 1:
        yield var.place.finding("has max 0, expected at least 1", at="/max")


def one_var_per_axis(facts: Facts) -> Iterator[Finding]:
    """At most one var counts an axis."""
    for axis in get_args(Axis):
        names = sorted(name for name, var in facts.manifest.vars.items() if var.axis == axis)
        if len(names) > 1:
            yield Finding(
                f"vars {listed(names)} all count the `{axis}` axis, expected one",
                "/vars",
                tuple(f"var {name}" for name in names),
            )


def no_ranks_axis_when_dealt(var: Named[Var]) -> Iterator[Finding]:
    """No var counts `ranks` once a state deals positions: the group then runs one batch."""
    deal = var.facts.deal
    if deal is not None and var.value.axis == "ranks":
        yield var.place.finding(
            f"counts the `ranks` axis, but state `{deal.state}` deals positions over group "
            f"`{deal.group}`, whose members all take the same rows",
            f"state {deal.state}",
            f"group {deal.group}",
            at="/axis",
        )


VAR_ROWS: Rows[Named[Var]] = (Rule("V1", "vars", max_at_least_one),)
AXIS_ROWS: Rows[Facts] = (Rule("V2", "vars", one_var_per_axis),)
DEALT_VAR_ROWS: Rows[Named[Var]] = (Rule("V3", "vars", no_ranks_axis_when_dealt),)
