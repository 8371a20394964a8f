"""The format's version and the manifest's place in a pipeline."""

from collections.abc import Iterator

from bedstone.spec.manifest import SCHEMA_VERSION
from bedstone.verify.facts import Facts
from bedstone.verify.rule import Finding, Rows, Rule


def version(facts: Facts) -> Iterator[Finding]:
    """`schema_version` is the one this reader knows."""
    found = facts.manifest.schema_version
    if found != SCHEMA_VERSION:
        yield Finding(
            f"`schema_version` is {found}, expected {SCHEMA_VERSION}", "/schema_version", ()
        )


def stage(facts: Facts) -> Iterator[Finding]:
    """A cut has an id and at least two stages, and its stage is one of them."""
    cut = facts.manifest.cut
    if cut is not None and not (cut.id and cut.stages >= 2 and cut.stage < cut.stages):
        yield Finding(
            f"`cut` is stage {cut.stage} of {cut.stages} with id `{cut.id}`, expected a stage "
            "below at least 2 stages and an id that is not empty",
            "/cut",
            (),
        )


FORMAT_ROWS: Rows[Facts] = (Rule("F1", "format", version),)
CUT_ROWS: Rows[Facts] = (Rule("K1", "format", stage),)
