"""Lengths at which kernels change their path: a pure function of a manifest's structure."""

TILES = (64, 128)
"""Positions or rows that kernels take as one."""

FAR = 4096
"""Positions past which offsets, and lists of a size set in advance, have run over before."""

_AFTER = 4
"""The least length that a long sequence feeds of its own."""


def prompt_lengths(page: int, rows: int, reach: int) -> tuple[int, ...]:
    """Lengths of prompts that are fed from their first token, shortest first.

    One token, around a page, past two, around tiles, and one more than the most rows of a call.
    """
    edges = {1, page - 1, page, page + 1, 2 * page + 1, rows + 1}
    edges |= {tile + off for tile in TILES for off in (-1, 0, 1)}
    return tuple(sorted(edge for edge in edges if 1 <= edge <= reach))


def far_ends(page: int, reach: int) -> tuple[int, ...]:
    """Lengths that long sequences end at: past `FAR`, and the context's end."""
    ends = {reach} | ({FAR + 1} if reach > FAR else set())
    return tuple(sorted(end for end in ends if far_start(page, end) > 0))


def far_start(page: int, end: int) -> int:
    """The page edge from which a long sequence has pages of its own."""
    return (end - _AFTER) // page * page
