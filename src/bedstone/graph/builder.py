"""A builder of StepGraphs: it declares what ops name and infers the shape of what they make."""

from bedstone.graph.check import require
from bedstone.graph.infer import constant_value, results
from bedstone.graph.refs import writes
from bedstone.graph.step import (
    Carried,
    Const,
    FormName,
    Op,
    Ref,
    RopeTable,
    StepGraph,
    Table,
    Value,
)
from bedstone.spec.dtype import FormatName


class Builder:
    """Collects one step's ops in order. A name declared twice alike is one declaration."""

    def __init__(
        self, model: str, form: FormName, rows: int, *, row_param: str | None = None
    ) -> None:
        self.form: FormName = form
        self.rows = rows
        self._model = model
        self.row_param = row_param
        self._ops: list[Op] = []
        self._consts: dict[str, Const] = {}
        self._tables: dict[str, Table] = {}
        self._carried: dict[str, Carried] = {}
        self._ropes: dict[str, RopeTable] = {}
        self._params: list[str] = [] if row_param is None else [row_param]
        self._known: dict[str, Value] = {}

    def const(self, name: str, fmt: FormatName, shape: tuple[int, ...]) -> Ref:
        """Declare a constant; `shape` is [e, n, k], [n, k] or [n]."""
        const = self._consts[name] = Const(name, fmt, shape)
        self._known[name] = constant_value(const)
        return Ref(name)

    def table(self, table: Table) -> Ref:
        """Declare a table; the name is its first version."""
        self._tables[table.name] = table
        self._known[table.name] = Value(table.capacity, table.width)
        return Ref(table.name)

    def carried(self, name: str) -> Ref:
        """Declare a carried vector of ids, one a row."""
        self._carried[name] = Carried(name, self.rows)
        self._known[name] = Value(self.rows, 1, "i32")
        return Ref(name)

    def rope(self, rope: RopeTable) -> str:
        """Declare rotation frequencies."""
        self._ropes[rope.name] = rope
        return rope.name

    def param(self, name: str) -> str:
        """Declare a param."""
        if name not in self._params:
            self._params.append(name)
        return name

    def add(self, op: Op) -> Ref:
        """Append `op`, which reads only known names, and name what it makes."""
        self._known |= results(op, self._known)
        self._ops.append(op)
        return Ref(op.out)

    def value(self, ref: Ref) -> Value:
        """The shape of a known tensor."""
        return self._known[ref]

    def build(self, *outputs: Ref) -> StepGraph:
        """The graph, checked: a `CallerError` where it is not legal."""
        graph = StepGraph(
            model=self._model,
            form=self.form,
            rows=self.rows,
            ops=tuple(self._ops),
            consts=self._consts,
            tables=self._tables,
            carried=self._carried,
            ropes=self._ropes,
            params=tuple(self._params),
            outputs=outputs,
            row_param=self.row_param,
            values={name: self._known[name] for op in self._ops for name in writes(op)},
        )
        require(graph)
        return graph
