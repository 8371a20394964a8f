"""Sharded states: positions dealt over a group, or a sequence's heads split over it."""

from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.spec.expr import U64_MAX
from bedstone.spec.manifest import HeadsShard, PositionShard, Shard, State
from bedstone.verify.facts import Deal, Named, is_paged, is_per_sequence
from bedstone.verify.rule import Each, Finding, Place, Rows, Rule
from bedstone.verify.topology import GROUP_USE_ROWS, GroupUse


def sort_of(state: State) -> str:
    """What sort a state is, in the words of the messages."""
    if state.host is not None:
        return "a host"
    if is_paged(state):
        return "a paged"
    return "a per-sequence" if is_per_sequence(state) else "a fixed"


@dataclass(frozen=True, slots=True)
class ShardSite:
    """A state's shard."""

    state: Named[State]
    shard: Shard

    @property
    def place(self) -> Place:
        """The shard's own place."""
        return self.state.place.inner("shard", "/shard")


@dataclass(frozen=True, slots=True)
class Split:
    """A split by heads that can be measured: its state is per-sequence, its group exists."""

    place: Place
    shard: HeadsShard
    members: int
    bytes_per_seq: int


@dataclass(frozen=True, slots=True)
class SplitSegment:
    """One segment of a split: `rows` rows of `width` bytes."""

    split: Split
    index: int
    rows: int
    width: int

    @property
    def place(self) -> Place:
        """The segment's own place."""
        return self.split.place.inner(f"segment #{self.index}", f"/segments/{self.index}")


@dataclass(frozen=True, slots=True)
class PagedState:
    """A paged state of a manifest that deals positions."""

    state: Named[State]
    deal: Deal


def as_shard(state: Named[State]) -> Iterator[ShardSite]:
    """The state's shard, if it has one."""
    if state.value.shard is not None:
        yield ShardSite(state, state.value.shard)


def shard_group(site: ShardSite) -> Iterator[GroupUse]:
    """The group the shard names."""
    yield GroupUse(site.state.facts, site.place, site.shard.group)


def position_deals_paged(site: ShardSite) -> Iterator[Finding]:
    """`by: position` deals a paged state."""
    if isinstance(site.shard, PositionShard) and not is_paged(site.state.value):
        yield site.place.finding(
            f"deals positions of {sort_of(site.state.value)} state, expected a paged one"
        )


def heads_split_sequences(site: ShardSite) -> Iterator[Finding]:
    """`by: heads` splits a per-sequence state."""
    if isinstance(site.shard, HeadsShard) and not is_per_sequence(site.state.value):
        yield site.place.finding(
            f"splits heads of {sort_of(site.state.value)} state, expected a per-sequence one"
        )


def as_split(site: ShardSite) -> Iterator[Split]:
    """The split, when it can be measured."""
    members = site.state.facts.groups.get(site.shard.group)
    measurable = isinstance(site.shard, HeadsShard) and is_per_sequence(site.state.value)
    if isinstance(site.shard, HeadsShard) and measurable and members is not None:
        yield Split(site.place, site.shard, members, site.state.value.bytes_per_seq)


def has_segments(split: Split) -> Iterator[Finding]:
    """A split has at least one segment."""
    if not split.shard.segments:
        yield split.place.finding("has no segments, expected at least one", at="/segments")


def each_segment(split: Split) -> Iterator[SplitSegment]:
    """The split's segments in order."""
    for index, (rows, width) in enumerate(split.shard.segments):
        yield SplitSegment(split, index, rows, width)


def segment_nonzero(segment: SplitSegment) -> Iterator[Finding]:
    """A segment has rows, and its rows have bytes."""
    if not (segment.rows and segment.width):
        yield segment.place.finding(
            f"is {segment.rows} rows of {segment.width} bytes, expected neither to be 0"
        )


def segment_divides(segment: SplitSegment) -> Iterator[Finding]:
    """The members of the group share a segment's rows evenly."""
    rows, width, members = segment.rows, segment.width, segment.split.members
    if rows and width and (members == 0 or width % members):
        group = segment.split.shard.group
        yield segment.place.finding(
            f"has rows of {width} bytes, expected a multiple of the {members} members of `{group}`",
            f"group {group}",
            at="/1",
        )


def segments_cover(split: Split) -> Iterator[Finding]:
    """The segments span what the members hold of one sequence together."""
    spans = sum(rows * width for rows, width in split.shard.segments)
    holds = split.members * split.bytes_per_seq
    if split.shard.segments and (spans != holds or spans > U64_MAX):
        yield split.place.finding(
            f"has segments of {_bytes(spans)}, expected the {split.members} members of "
            f"`{split.shard.group}` times {split.bytes_per_seq} bytes per sequence, "
            f"{_bytes(holds)}",
            f"group {split.shard.group}",
            at="/segments",
        )


def _bytes(count: int) -> str:
    return "more than 2^64 bytes" if count > U64_MAX else f"{count} bytes"


def as_paged(state: Named[State]) -> Iterator[PagedState]:
    """The state, when it is paged and some state deals positions."""
    if state.facts.deal is not None and is_paged(state.value):
        yield PagedState(state, state.facts.deal)


def dealt_like_the_first(paged: PagedState) -> Iterator[Finding]:
    """Once one paged state deals positions, every paged state does: they share page ids."""
    if not isinstance(paged.state.value.shard, PositionShard):
        yield paged.state.place.finding(
            f"deals no positions, but paged state `{paged.deal.state}` deals them over "
            f"`{paged.deal.group}`, expected both the same way",
            f"state {paged.deal.state}",
            f"group {paged.deal.group}",
        )


def dealt_over_one_group(paged: PagedState) -> Iterator[Finding]:
    """Every paged state deals positions over the same group."""
    shard = paged.state.value.shard
    if isinstance(shard, PositionShard) and shard.group != paged.deal.group:
        yield paged.state.place.finding(
            f"deals positions over `{shard.group}`, but paged state `{paged.deal.state}` deals "
            f"them over `{paged.deal.group}`, expected one group",
            f"state {paged.deal.state}",
            f"group {shard.group}",
            f"group {paged.deal.group}",
            at="/shard/group",
        )


SHARD_ROWS: Rows[Named[State]] = (
    Each(
        as_shard,
        (
            Each(shard_group, GROUP_USE_ROWS),
            Rule("S9", "shards", position_deals_paged),
            Rule("S12", "shards", heads_split_sequences),
            Each(
                as_split,
                (
                    Rule("S13", "shards", has_segments),
                    Each(
                        each_segment,
                        (
                            Rule("S14", "shards", segment_nonzero),
                            Rule("S15", "shards", segment_divides),
                        ),
                    ),
                    Rule("S16", "shards", segments_cover),
                ),
            ),
        ),
    ),
)
DEAL_ROWS: Rows[Named[State]] = (
    Each(
        as_paged,
        (
            Rule("S10", "shards", dealt_like_the_first),
            Rule("S11", "shards", dealt_over_one_group),
        ),
    ),
)
