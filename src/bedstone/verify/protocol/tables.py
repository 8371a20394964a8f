"""The tables a loop keeps for a sequence: which pages and which lines of the states are its own."""

from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Axis, Buffer, Dim, Manifest
from bedstone.verify.protocol.axes import Axes


class PageTable(Frozen):
    """An i32 input `[groups, pages]`: the page ids of each sequence, `tokens` token slots a page.

    `state` is the one its domain names; every paged state shares the page ids.
    """

    buffer: str
    state: str
    tokens: int
    pages: int


class LineTable(Frozen):
    """An i32 input of `lines` line indices for each sequence, `width` columns each.

    The value of line r for sequence slot s is `s * lines_per_slot + r`, where a line is
    `line_bytes` of the per-sequence state; slot 0 is never leased, so index 0 is the null line.
    `over` is the axis of the second dimension, None for a table of one sequence (`[lines]`).
    """

    buffer: str
    state: str
    line_bytes: int
    lines_per_slot: int
    lines: int
    over: Axis | None
    width: int = 1


def table_states(manifest: Manifest) -> dict[str, str]:
    """Every table of the manifest, by buffer name, with the state its domain names."""
    return {
        name: target
        for name, b in sorted(manifest.buffers.items())
        if b.kind == "input" and b.fill is None and b.domain is not None
        if (target := b.domain.index_into) is not None and target in manifest.states
    }


def page_tables(manifest: Manifest) -> tuple[PageTable, ...]:
    """The page tables of a manifest that keeps the table rules, by name."""
    return tuple(
        PageTable(name, state, _stride(manifest.buffers[name]), _pages(manifest.buffers[name]))
        for name, state in table_states(manifest).items()
        if manifest.states[state].bytes_per_seq == 0
    )


def line_tables(manifest: Manifest, axes: Axes) -> tuple[LineTable, ...]:
    """The line tables of a manifest that keeps the table rules, by name."""
    return tuple(
        _line_table(manifest, axes, name, state)
        for name, state in table_states(manifest).items()
        if manifest.states[state].bytes_per_seq > 0
    )


def _line_table(manifest: Manifest, axes: Axes, name: str, state: str) -> LineTable:
    buffer = manifest.buffers[name]
    lines, columns, width, *_ = (*buffer.shape, 1, 1)
    stride = _stride(buffer)
    return LineTable(
        buffer=name,
        state=state,
        line_bytes=stride,
        lines_per_slot=manifest.states[state].bytes_per_seq // stride,
        lines=_constant(lines),
        over=axes.counted_by(columns) if isinstance(columns, str) else None,
        width=_constant(width),
    )


def _stride(buffer: Buffer) -> int:
    return buffer.domain.stride if buffer.domain else 1


def _pages(buffer: Buffer) -> int:
    return _constant(buffer.shape[1])


def _constant(extent: Dim) -> int:
    return extent if isinstance(extent, int) else 0
