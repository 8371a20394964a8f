"""Programs: how each may be driven."""

from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.spec.manifest import Batch, Program
from bedstone.verify.facts import Facts, Named
from bedstone.verify.rule import Each, Finding, Place, Rows, Rule, listed


@dataclass(frozen=True, slots=True)
class BatchSite:
    """A program's batch."""

    facts: Facts
    place: Place
    batch: Batch


def has_programs(facts: Facts) -> Iterator[Finding]:
    """A manifest has at least one program."""
    if not facts.manifest.programs:
        yield Finding("the manifest has no programs, expected at least one", "/programs", ())


def once_or_batch(program: Named[Program]) -> Iterator[Finding]:
    """A program run once after load is not driven per step."""
    if program.value.once and program.value.batch is not None:
        yield program.place.finding("has `once` and `batch`, expected one of the two")


def derive_alone(program: Named[Program]) -> Iterator[Finding]:
    """A program run while weights load is run no other way."""
    value = program.value
    others = [
        name
        for name, found in (
            ("once", value.once),
            ("batch", value.batch is not None),
            ("graph", value.graph),
        )
        if found
    ]
    if value.derive and others:
        yield program.place.finding(
            f"has `derive` and {listed(others)}, expected `derive` alone", at="/derive"
        )


def graph_needs_batch(program: Named[Program]) -> Iterator[Finding]:
    """A captured program is driven per step."""
    if program.value.graph and program.value.batch is None:
        yield program.place.finding("has `graph` without `batch`, expected both", at="/graph")


def as_batch(program: Named[Program]) -> Iterator[BatchSite]:
    """The program's batch, if it has one."""
    if program.value.batch is not None:
        yield BatchSite(program.facts, program.place.inner("batch", "/batch"), program.value.batch)


def groups_nonzero(site: BatchSite) -> Iterator[Finding]:
    """A batch has at least one sequence."""
    if site.batch.groups == 0:
        yield site.place.finding("has `groups` 0, expected at least 1", at="/groups")


def rows_nonzero(site: BatchSite) -> Iterator[Finding]:
    """A constant number of rows is at least 1."""
    if site.batch.rows == 0:
        yield site.place.finding("has `rows` 0, expected at least 1", at="/rows")


def rows_known(site: BatchSite) -> Iterator[Finding]:
    """Rows given by name are a var."""
    rows = site.batch.rows
    if isinstance(rows, str) and rows not in site.facts.upper:
        yield site.place.finding(f"has `rows` of unknown var `{rows}`", f"var {rows}", at="/rows")


def context_known(site: BatchSite) -> Iterator[Finding]:
    """A context is a var."""
    context = site.batch.context
    if context is not None and context not in site.facts.upper:
        yield site.place.finding(
            f"has `context` of unknown var `{context}`", f"var {context}", at="/context"
        )


PROGRAMS_ROWS: Rows[Facts] = (Rule("Y1", "programs", has_programs),)
PROGRAM_ROWS: Rows[Named[Program]] = (
    Rule("Y2", "programs", once_or_batch),
    Rule("Y3", "programs", derive_alone),
    Rule("Y4", "programs", graph_needs_batch),
    Each(
        as_batch,
        (
            Rule("Y5", "programs", groups_nonzero),
            Rule("Y6", "programs", rows_nonzero),
            Rule("Y7", "programs", rows_known),
            Rule("Y8", "programs", context_known),
        ),
    ),
)
