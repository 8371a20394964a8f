"""What is known where an op stands, and the questions every op's rows ask of it."""

from dataclasses import dataclass, field

from bedstone.graph.refs import reads, table_write
from bedstone.graph.step import Concat, Linear, Op, Part, StepGraph, Value

Rows = list[tuple[bool, str]]


@dataclass(slots=True)
class Scope:
    """What is known where an op stands: the values so far, and the latest version of each table.

    `versions` maps each version made so far to its table, `latest` a table to its newest version;
    `spread` are tensors computed row by row from all of a table.
    """

    graph: StepGraph
    known: dict[str, Value]
    versions: dict[str, str]
    latest: dict[str, str] = field(default_factory=dict)
    spread: set[str] = field(default_factory=set)

    def note(self, op: Op) -> None:
        """Take note of what `op` made: a table's next version, or something of a table's rows."""
        written = table_write(op)
        if written is not None:
            earlier, version = written
            table = self.versions.get(earlier, earlier)
            self.versions[version] = table
            self.latest[table] = version
        if isinstance(op, Linear | Part | Concat) and any(map(self._cached, reads(op))):
            self.spread.add(op.out)

    def const(self, name: str, rank: int) -> tuple[bool, str]:
        """That `name` is a constant of this many dimensions."""
        const = self.graph.consts.get(name)
        noun = ("vector", "matrix", "stack of matrices")[rank - 1]
        return const is not None and len(const.shape) == rank, f"`{name}` is no constant {noun}"

    def stack(self, name: str) -> tuple[int, ...]:
        """The shape [e, n, k] of a stack of matrices, all zeros where `name` is none."""
        const = self.graph.consts.get(name)
        return const.shape if const is not None and len(const.shape) == 3 else (0, 0, 0)

    def table(self, name: str) -> tuple[bool, str]:
        """That `name` is a version of a table."""
        return name in self.versions, f"`{name}` is no table"

    def cached(self, name: str) -> tuple[bool, str]:
        """That `name` is a version of a table, or computed from all rows of one."""
        return self._cached(name), f"`{name}` is no table, and made of none"

    def _cached(self, name: str) -> bool:
        return name in self.versions or name in self.spread

    def zeros(self, name: str) -> tuple[bool, str]:
        """That `name` is a version of a table whose sequence begins with zeros."""
        table = self.graph.tables.get(self.versions.get(name, ""))
        return table is not None and table.zeros, f"`{name}` is no table that begins with zeros"

    def shape(self, name: str, rows: int, width: int) -> tuple[bool, str]:
        """That `name` is [rows, width]."""
        found = self.known[name]
        holds = (found.rows, found.width) == (rows, width)
        return holds, f"`{name}` is [{found.rows}, {found.width}], not [{rows}, {width}]"

    def ids(self, name: str, rows: int) -> tuple[bool, str]:
        """That `name` holds ids, `rows` rows of them."""
        found = self.known[name]
        return (found.dtype, found.rows) == ("i32", rows), f"`{name}` holds no ids of {rows} rows"

    def value(self, name: str) -> tuple[bool, str]:
        """That `name` is a computed f32 tensor (or a table read as one)."""
        holds = name not in self.graph.consts and self.known[name].dtype == "f32"
        return holds, f"`{name}` is no computed f32 tensor"

    def param(self, name: str) -> tuple[bool, str]:
        """That `name` is a param."""
        return name in self.graph.params, f"`{name}` is no param"

    def wide(self, name: str, width: int) -> tuple[bool, str]:
        """That the rows of `name` are `width` wide."""
        found = self.known[name].width
        return found == width, f"rows of `{name}` hold {found} values, not {width}"
