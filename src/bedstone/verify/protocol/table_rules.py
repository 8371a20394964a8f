"""Rules on page tables and line tables."""

from collections.abc import Iterator

from bedstone.spec.manifest import Dim
from bedstone.verify.protocol.reading import Reading, Tabled, each_driven, each_table
from bedstone.verify.rule import Each, Finding, Rows, Rule


def index_dtype(table: Tabled) -> Iterator[Finding]:
    """A table is i32: page and line indices are."""
    if table.buffer.dtype != "i32":
        yield table.place.finding(
            f"is a table over state `{table.state}` of dtype {table.buffer.dtype}, expected i32",
            f"state {table.state}",
            at="/dtype",
        )


def page_shape(table: Tabled) -> Iterator[Finding]:
    """A page table is `[groups, n]`."""
    axes, shape = table.reading.axes, table.buffer.shape
    if _per_sequence(table):
        return
    if not (len(shape) == 2 and _axis(table, shape[0]) == "groups" and isinstance(shape[1], int)):
        yield table.place.finding(
            f"is a page table over state `{table.state}` of shape {_spelled(shape)}, expected "
            f"[{axes.spelled('groups')}, n]",
            f"state {table.state}",
            at="/shape",
        )


def line_shape(table: Tabled) -> Iterator[Finding]:
    """A line table is `[lines, groups]` or `[lines, ranks]`, a constant width after it or none."""
    if _per_sequence(table) and (problem := _line_problem(table)):
        yield table.place.finding(
            f"is a line table over state `{table.state}` {problem}",
            f"state {table.state}",
            at="/shape",
        )


def line_count(table: Tabled) -> Iterator[Finding]:
    """A line table names no more lines than its state holds for a sequence."""
    lines, domain = table.buffer.shape[0], table.buffer.domain
    if not _per_sequence(table) or domain is None or isinstance(lines, str):
        return
    held = table.reading.manifest.states[table.state].bytes_per_seq // domain.stride
    if lines > held:
        yield table.place.finding(
            f"names {lines} lines of a sequence, but state `{table.state}` holds {held}",
            f"state {table.state}",
            at="/shape/0",
        )


def _line_problem(table: Tabled) -> str | None:
    shape, axes = table.buffer.shape, table.reading.axes
    column = shape[1] if len(shape) > 1 else None
    if column is not None and _axis(table, column) == "rows":
        return f"with a column for each row (`{column}`), expected one for each sequence"
    if _one_sequence(table) or _columns(table):
        return None
    seqs, members = axes.spelled("groups"), axes.spelled("ranks")
    return (
        f"of shape {_spelled(shape)}, expected [n, {seqs}], [n, {members}], either with a constant "
        f"width after it, or [n] where no program takes more than one sequence"
    )


def _columns(table: Tabled) -> bool:
    shape = table.buffer.shape
    return (
        len(shape) in {2, 3}
        and _axis(table, shape[1]) in {"groups", "ranks"}
        and all(isinstance(extent, int) for extent in (shape[0], *shape[2:]))
    )


def _one_sequence(table: Tabled) -> bool:
    shape = table.buffer.shape
    alone = all(driven.batch.groups == 1 for driven in each_driven(table.reading))
    return len(shape) == 1 and isinstance(shape[0], int) and alone


def _axis(table: Tabled, extent: Dim) -> str | None:
    return table.reading.axes.counted_by(extent) if isinstance(extent, str) else None


def _per_sequence(table: Tabled) -> bool:
    return table.reading.manifest.states[table.state].bytes_per_seq > 0


def _spelled(shape: tuple[Dim, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


TABLE_ROWS: Rows[Reading] = (
    Each(
        each_table,
        (
            Rule("R-index", "tables", index_dtype),
            Rule("R-pages", "tables", page_shape),
            Rule("R-lines", "tables", line_shape),
            Rule("R-line-count", "tables", line_count),
        ),
    ),
)
