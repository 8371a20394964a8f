"""How launches are sized for their device: fixed when the step is planned, for every position."""

from bedstone.lane.facts import Knobs


def attended_span(length: int, window: int | None) -> int:
    """The most positions one query attends in a cache of `length` rows: all, or its window."""
    return length if window is None else min(length, window)


def split_count(span: int, tiles: int, knobs: Knobs) -> int:
    """Enough pieces of `span` for `tiles` independent tiles to fill the device, none too short."""
    wanted = -(-knobs.target_blocks // tiles)
    longest = min(knobs.max_splits, -(-span // knobs.min_span))
    return max(1, min(wanted, longest))


def share_rows(heads: int, groups: int, rows: int) -> bool:
    """Whether a cached row, read once, serves several queries of an attention."""
    return heads > groups or rows > 1
