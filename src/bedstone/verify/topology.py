"""Topology groups: their sizes, and every place that names one."""

from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.verify.facts import Facts, Named
from bedstone.verify.rule import Finding, Place, Rows, Rule, listed


@dataclass(frozen=True, slots=True)
class GroupUse:
    """A place that names a group."""

    facts: Facts
    place: Place
    group: str

    @property
    def members(self) -> int | None:
        """The group's member count; None for a group that does not exist."""
        return self.facts.groups.get(self.group)


def has_members(group: Named[int]) -> Iterator[Finding]:
    """A group has at least one member."""
    if group.value < 1:
        yield group.place.finding("has 0 members, expected at least 1")


def known_group(use: GroupUse) -> Iterator[Finding]:
    """A named group is one of the topology's."""
    if use.facts.manifest.topology is not None and use.members is None:
        known = listed(tuple(use.facts.groups)) or "none"
        yield use.place.finding(
            f"names unknown group `{use.group}`, the topology has {known}", f"group {use.group}"
        )


def topology_declared(use: GroupUse) -> Iterator[Finding]:
    """A manifest that names a group declares a topology."""
    if use.facts.manifest.topology is None:
        yield use.place.finding(
            f"names group `{use.group}`, but the manifest declares no topology",
            f"group {use.group}",
        )


GROUP_ROWS: Rows[Named[int]] = (Rule("T1", "topology", has_members),)
GROUP_USE_ROWS: Rows[GroupUse] = (
    Rule("T3", "topology", known_group),
    Rule("T4", "topology", topology_declared),
)
