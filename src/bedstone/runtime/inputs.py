"""What a call of one sequence or several writes into the inputs it reads. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CallerError
from bedstone.runtime.arrays import numpy_dtype
from bedstone.runtime.lease import Lease
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Fill
from bedstone.spec.sampling import LIKELIEST, Knobs, Sampling, signed
from bedstone.verify.protocol import LineTable, Protocol, Role, Shape

Values = Sequence[float]


class Feed(Frozen):
    """Tokens of one sequence that go in at positions from `start` on; what follows is drawn so.

    Those that are not `real` belong to nobody: a program that takes more sequences has them.
    """

    tokens: Sequence[int]
    start: int
    lease: Lease
    sampling: Sampling = LIKELIEST
    real: bool = True

    @property
    def length(self) -> int:
        """The sequence's length once they are in."""
        return self.start + len(self.tokens)

    @property
    def positions(self) -> range:
        """Where they go."""
        return range(self.start, self.length)


_FILLED: Mapping[Fill, Callable[[Role, Feed], Values]] = {
    "token": lambda role, feed: feed.tokens[:1] if role.over == "groups" else feed.tokens,
    "position": lambda _, feed: feed.positions,
    "valid": lambda _, feed: [int(feed.real)] * len(feed.tokens),
    "slot": lambda _, feed: [feed.lease.token_slot(at) for at in feed.positions],
    "seq_len": lambda _, feed: [feed.length],
    "temperature": lambda _, feed: [feed.sampling.temperature],
    # whoever reads a temperature of zero otherwise takes the likeliest token all the same
    "top_k": lambda _, feed: [feed.sampling.top_k if feed.sampling.temperature > 0 else 1],
    "top_p": lambda _, feed: [feed.sampling.top_p],
    "min_p": lambda _, feed: [feed.sampling.min_p],
    "seed": lambda _, feed: [signed(feed.sampling.seed)],
}

_OF_ALL: Mapping[Fill, Callable[[Values], Values]] = {
    "cu_seqlens": lambda ends: ends,
    "blocks": lambda ends: (0, ends[-1]),
}
"""What is made of where the rows of each sequence end, a zero before; the last is repeated."""


def input_roles(protocol: Protocol, shape: Shape, knobs: Knobs | None = None) -> tuple[Role, ...]:
    """The fills that a program reads.

    Raises `CallerError`: it reads an input that no fill, no table and no knob says how to write.
    """
    known = frozenset[str]() if knobs is None else knobs.buffers
    staged = sorted(set(shape.inputs) & set(protocol.staged) - known)
    if staged:
        raise CallerError(
            f"program `{shape.program}` reads `{staged[0]}`, which only its caller can write"
        )
    return tuple(role for role in protocol.roles if role.buffer in shape.inputs)


def call_inputs(roles: Sequence[Role], *feeds: Feed) -> Iterator[tuple[str, NDArray[np.generic]]]:
    """Each input buffer with the elements that go to its front, those of each feed in turn.

    Raises `CallerError`: a value is one that the buffer's type cannot hold.
    """
    ends = tuple(accumulate((len(feed.tokens) for feed in feeds), initial=0))
    for role in roles:
        bounds = _OF_ALL.get(role.fill)
        if bounds is not None:
            front = bounds(ends)
            values = [*front, *[ends[-1]] * (role.entries - len(front))]
        else:
            values = [value for feed in feeds for value in _FILLED[role.fill](role, feed)]
        yield role.buffer, _array(role, values)


def _array(role: Role, values: Values) -> NDArray[np.generic]:
    try:
        return np.array(values, numpy_dtype(role.dtype))
    except OverflowError as error:
        raise CallerError(f"input `{role.buffer}` takes {role.dtype}: {error}") from error


def table_inputs(protocol: Protocol, *leases: Lease) -> Iterator[tuple[str, NDArray[np.generic]]]:
    """Each page and line table with the elements that describe the leases, in their order."""
    for pages in protocol.page_tables:
        rows = [lease.page_entries(pages) for lease in leases]
        yield pages.buffer, np.array(rows, np.int32).reshape(-1)
    for lines in protocol.line_tables:
        yield lines.buffer, _lines(protocol, lines, leases)


def _lines(protocol: Protocol, table: LineTable, leases: Sequence[Lease]) -> NDArray[np.int32]:
    """Their lines in the first columns; the null slot's in the others, which no sequence has."""
    if table.lines > table.lines_per_slot:
        raise CallerError(
            f"line table `{table.buffer}` names {table.lines} lines a sequence, state "
            f"`{table.state}` holds {table.lines_per_slot}"
        )
    axis = {"groups": protocol.groups, "ranks": protocol.ranks}.get(table.over or "")
    columns = axis.max if axis else 1
    entries = np.zeros((table.lines, columns, table.width), np.int32)
    entries += np.arange(table.lines, dtype=np.int32)[:, None, None]
    if len(leases) > columns:
        raise CallerError(f"line table `{table.buffer}` has no columns for {len(leases)} sequences")
    for column, lease in enumerate(leases):
        entries[:, column, :] = np.array(lease.line_entries(table), np.int32)[:, None]
    return entries
