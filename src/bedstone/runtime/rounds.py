"""Speculative rounds: programs that draft what follows a token and take what of it is right.

A round takes several rows a sequence: the token that goes in, and rows for what it drafts itself.
It hands back what follows each row, and how many of these count; rows past them lie where the next
round writes.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CallerError, DeviceError
from bedstone.spec.manifest import Fill
from bedstone.spec.sampling import Sampling
from bedstone.verify.protocol import Chain, Protocol, Shape

DRAWN: tuple[Fill, ...] = ("temperature", "top_k", "top_p", "min_p", "seed")
"""What says how a sequence's tokens are drawn."""


def rows_of_rounds(protocol: Protocol, rows: int | None) -> int:
    """How many rows of each sequence a step takes: the most there are, or as many as asked for.

    Raises `CallerError`: there are no rounds of as many.
    """
    if rows is None:
        return max(protocol.rounds, default=1)
    if rows != 1 and rows not in protocol.rounds:
        there = ", ".join(map(str, protocol.rounds)) or "none"
        raise CallerError(f"`rows` is {rows}: expected 1, or those of a round; there are {there}")
    return rows


def round_of(protocol: Protocol, sequences: int, rows: int) -> Shape | None:
    """The program of rounds of so many sequences; None where a step takes one row of each."""
    shape = protocol.choose(sequences, rows) if rows > 1 else None
    return shape if shape is not None and shape.is_round else None


def draws(protocol: Protocol, shape: Shape, sampling: Sampling) -> bool:
    """Whether a program draws tokens as asked for, and takes not just the likeliest."""
    read = {role.fill for role in protocol.roles if role.buffer in shape.inputs}
    there = {role.fill for role in protocol.roles if role.fill in DRAWN}
    return sampling.temperature <= 0 or ("temperature" in there and there <= read)


def taken(
    program: Shape | Chain, tokens: NDArray[np.generic], counts: NDArray[np.generic]
) -> Sequence[Sequence[int]]:
    """The tokens that count of each sequence, of [sequences, rows] and [sequences].

    Raises `DeviceError`: a count is none that a round can have.
    """
    rows = tokens.shape[1]
    if counts.size and not 1 <= counts.min() <= counts.max() <= rows:
        wrong = next(count for count in counts.tolist() if not 1 <= count <= rows)
        raise DeviceError(
            f"program `{program.program}` set `{program.count}` to {wrong}: expected 1 to {rows}"
        )
    pairs = zip(tokens.tolist(), counts.tolist(), strict=True)
    return [row[:count] for row, count in pairs]
