"""Calls: ops that exist, with one argument for each parameter."""

from collections.abc import Iterator

from bedstone.spec.manifest import Program
from bedstone.verify.call_memory import MEMORY_ROWS
from bedstone.verify.call_scalars import SCALAR_ROWS
from bedstone.verify.callsite import CallSite, Resolved, as_resolved, each_arg, each_call
from bedstone.verify.facts import Named
from bedstone.verify.rule import Each, Finding, Rows, Rule


def op_known(site: CallSite) -> Iterator[Finding]:
    """A call's op exists."""
    if site.call.op not in site.facts.manifest.ops:
        yield site.place.finding(
            f"names unknown op `{site.call.op}`", f"op {site.call.op}", at="/op"
        )


def derive_joins_no_group(call: Resolved) -> Iterator[Finding]:
    """A derive program, which runs before any group is joined, calls no collective."""
    site = call.site
    if site.program.value.derive and call.facts.is_collective:
        yield site.place.finding(
            f"calls collective op `{site.call.op}` in a `derive` program, which runs before any "
            "group is joined",
            f"op {site.call.op}",
            at="/op",
        )


def one_argument_per_parameter(call: Resolved) -> Iterator[Finding]:
    """A call has one argument for each parameter of its op."""
    found, wanted = len(call.site.call.args), len(call.op.params)
    if found != wanted:
        yield call.site.place.finding(
            f"has {found} arguments, expected {wanted} for op `{call.site.call.op}`",
            f"op {call.site.call.op}",
            at="/args",
        )


CALL_ROWS: Rows[Named[Program]] = (
    Each(
        each_call,
        (
            Rule("Z1", "calls", op_known),
            Each(
                as_resolved,
                (
                    Rule("Z12", "calls", derive_joins_no_group),
                    Rule("Z2", "calls", one_argument_per_parameter),
                    Each(
                        each_arg,
                        (*MEMORY_ROWS, *SCALAR_ROWS),
                    ),
                ),
            ),
        ),
    ),
)
