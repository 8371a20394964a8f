"""Binding: which checkpoint tensors a weight or a source is laid out from, and where it is kept."""

from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.spec.manifest import (
    Buffer,
    Interleave,
    Ranges,
    RankedRanges,
    RankedTensors,
    Segment,
    TensorSource,
)
from bedstone.verify.facts import Facts, Named
from bedstone.verify.rule import Each, Finding, Place, Rows, Rule
from bedstone.verify.topology import GROUP_USE_ROWS, GroupUse

BOUND_KINDS = frozenset({"weight", "source"})


@dataclass(frozen=True, slots=True)
class SegmentSite:
    """One segment of a bound buffer."""

    facts: Facts
    place: Place
    segment: Segment


@dataclass(frozen=True, slots=True)
class Names:
    """Where a segment's tensor names come from: its own or its interleave partner's."""

    facts: Facts
    place: Place
    source: TensorSource


@dataclass(frozen=True, slots=True)
class InterleaveSite:
    """A segment's interleave."""

    site: SegmentSite
    interleave: Interleave

    @property
    def place(self) -> Place:
        """The interleave's own place."""
        return self.site.place.inner("interleave", "/interleave")


@dataclass(frozen=True, slots=True)
class Window:
    """The rows or the columns a segment selects; `axis` is `rows` or `cols`."""

    facts: Facts
    place: Place
    axis: str
    ranges: Ranges


def host_weight_is_immutable(buffer: Named[Buffer]) -> Iterator[Finding]:
    """Only a weight that is not exported is kept on the host."""
    value = buffer.value
    if value.placement == "host" and (value.kind != "weight" or value.export):
        found = f"an exported {value.kind}" if value.export else f"of kind `{value.kind}`"
        yield buffer.place.finding(
            f"is placed on the host but is {found}, expected a weight that is not exported",
            at="/placement",
        )


def host_weight_is_shared(buffer: Named[Buffer]) -> Iterator[Finding]:
    """A weight kept on the host is the same for every rank."""
    if buffer.value.placement == "host" and any(_is_ranked(s) for s in buffer.value.bind):
        yield buffer.place.finding(
            "is placed on the host and selects tensors, rows or columns by rank, expected one "
            "selection for all ranks",
            at="/placement",
        )


def _is_ranked(segment: Segment) -> bool:
    partner = segment.interleave.with_ if segment.interleave else None
    choices = (segment.tensor, segment.rows, segment.cols, partner)
    return any(isinstance(choice, RankedTensors | RankedRanges) for choice in choices)


def weight_is_bound(buffer: Named[Buffer]) -> Iterator[Finding]:
    """A weight or a source binds at least one checkpoint tensor."""
    if buffer.value.kind in BOUND_KINDS and not buffer.value.bind:
        yield buffer.place.finding(
            f"is a {buffer.value.kind} and binds nothing, expected at least one checkpoint tensor"
        )


def only_weights_are_bound(buffer: Named[Buffer]) -> Iterator[Finding]:
    """Nothing but a weight or a source binds checkpoint tensors."""
    if buffer.value.kind not in BOUND_KINDS and buffer.value.bind:
        yield buffer.place.finding(
            f"binds checkpoint tensors and is of kind `{buffer.value.kind}`, "
            "expected a weight or a source",
            at="/bind",
        )


def each_segment(buffer: Named[Buffer]) -> Iterator[SegmentSite]:
    """The segments of a weight or a source."""
    if buffer.value.kind in BOUND_KINDS:
        for index, segment in enumerate(buffer.value.bind):
            place = buffer.place.inner(f"bind #{index}", f"/bind/{index}")
            yield SegmentSite(buffer.facts, place, segment)


def each_names(site: SegmentSite) -> Iterator[Names]:
    """The segment's tensor names, then its partner's."""
    yield Names(site.facts, site.place.inner("tensor", "/tensor"), site.segment.tensor)
    if site.segment.interleave is not None:
        place = site.place.inner("interleaved tensor", "/interleave/with")
        yield Names(site.facts, place, site.segment.interleave.with_)


def names_group(names: Names) -> Iterator[GroupUse]:
    """The group a table of names is indexed by."""
    if isinstance(names.source, RankedTensors):
        yield GroupUse(names.facts, names.place, names.source.group)


def name_per_member(names: Names) -> Iterator[Finding]:
    """A table has one tensor name for each member of its group."""
    if isinstance(names.source, RankedTensors):
        found = len(names.source.tensors)
        yield from _one_per_member(names.facts, names.place, names.source.group, found, "names")


def name_not_empty(names: Names) -> Iterator[Finding]:
    """A tensor name is not empty."""
    source = names.source
    if "" in (source.tensors if isinstance(source, RankedTensors) else (source,)):
        yield names.place.finding("has an empty name")


def as_interleave(site: SegmentSite) -> Iterator[InterleaveSite]:
    """The segment's interleave, if it has one."""
    if site.segment.interleave is not None:
        yield InterleaveSite(site, site.segment.interleave)


def blocks_have_rows(site: InterleaveSite) -> Iterator[Finding]:
    """Interleaved blocks are at least one row high."""
    if site.interleave.rows == 0:
        yield site.place.finding("takes blocks of 0 rows, expected at least 1", at="/rows")


def interleaves_whole_tensors(site: InterleaveSite) -> Iterator[Finding]:
    """An interleaved segment takes both tensors whole."""
    segment = site.site.segment
    if segment.rows is not None or segment.cols is not None:
        yield site.place.finding("is of a range of rows or columns, expected whole tensors")


def each_window(site: SegmentSite) -> Iterator[Window]:
    """What the segment selects: rows, then columns."""
    for axis, ranges in (("rows", site.segment.rows), ("cols", site.segment.cols)):
        if ranges is not None:
            place = site.place.inner(f"`{axis}`", f"/{axis}")
            yield Window(site.facts, place, axis, ranges)


def window_group(window: Window) -> Iterator[GroupUse]:
    """The group a table of ranges is indexed by."""
    if isinstance(window.ranges, RankedRanges):
        yield GroupUse(window.facts, window.place, window.ranges.group)


def range_per_member(window: Window) -> Iterator[Finding]:
    """A table has one range for each member of its group."""
    if isinstance(window.ranges, RankedRanges):
        found = len(window.ranges.ranges)
        yield from _one_per_member(window.facts, window.place, window.ranges.group, found, "ranges")


def _one_per_member(
    facts: Facts, place: Place, group: str, found: int, what: str
) -> Iterator[Finding]:
    members = facts.groups.get(group)
    if members is not None and found != members:
        yield place.finding(
            f"has {what} for {found}, expected one for each of the {members} members of `{group}`",
            f"group {group}",
        )


def range_not_empty(window: Window) -> Iterator[Finding]:
    """A range starts below its end."""
    ranges = window.ranges
    for low, high in ranges.ranges if isinstance(ranges, RankedRanges) else (ranges,):
        if low >= high:
            yield window.place.finding(f"selects [{low}, {high}), expected a range with members")


PLACEMENT_ROWS: Rows[Named[Buffer]] = (
    Rule("H1", "bind", host_weight_is_immutable),
    Rule("H2", "bind", host_weight_is_shared),
)
BIND_ROWS: Rows[Named[Buffer]] = (
    Rule("N1", "bind", weight_is_bound),
    Rule("N2", "bind", only_weights_are_bound),
    Each(
        each_segment,
        (
            Each(
                each_names,
                (
                    Each(names_group, GROUP_USE_ROWS),
                    Rule("N4", "bind", name_per_member),
                    Rule("N3", "bind", name_not_empty),
                ),
            ),
            Each(
                as_interleave,
                (
                    Rule("N7", "bind", blocks_have_rows),
                    Rule("N8", "bind", interleaves_whole_tensors),
                ),
            ),
            Each(
                each_window,
                (Each(window_group, GROUP_USE_ROWS), Rule("N5", "bind", range_per_member)),
            ),
            Each(each_window, (Rule("N6", "bind", range_not_empty),)),
        ),
    ),
)
