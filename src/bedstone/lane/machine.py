"""The machine that a schedule is run on with symbols for values: memory, tables and what is due.

It knows where buffers lie and what the graph says each tensor holds, and nothing of the passes that
made the schedule.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from bedstone.graph.step import AtParam, Fixed, RowSel, Set
from bedstone.lane.facts import Facts
from bedstone.lane.graph_terms import graph_terms
from bedstone.lane.layout import Layout
from bedstone.lane.memory import Memory
from bedstone.lane.operand import (
    Carry,
    Dst,
    Form,
    Matrix,
    Read,
    Stack,
    ToBuf,
    ToEach,
    ToRows,
    ToScratch,
    Version,
)
from bedstone.lane.schedule import Buffer, Piece, Schedule, Slot
from bedstone.lane.terms import Size, Term, Terms


class BrokenStepError(Exception):
    """A launch that does not do what the graph says; only the verifier sees it."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A piece of a form in memory: the slot of the tensor it lies in, and how it lies there."""

    slot: Slot
    piece: Piece
    size: Size
    layout: Layout

    def row(self, index: int) -> Slot:
        """One row of the tensor."""
        nbytes = self.slot.nbytes // self.size[0]
        return Slot(self.slot.offset + index * nbytes, nbytes)


@dataclass(slots=True)
class Machine:
    """One run of a schedule on symbols.

    `expected` is what the graph says each tensor holds, `tables` what each carried table holds now,
    `made` the terms that the launch under way has computed.
    """

    schedule: Schedule
    facts: Facts
    terms: Terms = field(default_factory=Terms)
    memory: Memory = field(default_factory=Memory)
    tables: dict[str, Term] = field(default_factory=dict)
    expected: dict[str, Term] = field(init=False)
    made: set[Term] = field(default_factory=set)
    _busy: list[tuple[str, Slot]] = field(default_factory=list)
    _over: tuple[tuple[str, str], ...] = ()
    _rows_set: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.expected = graph_terms(self.terms, self.facts)
        carried = (table.name for table in self.facts.graph.tables.values() if not table.scratch)
        self.tables = {name: self.terms.source(name) for name in carried}
        sets = (op for op in self.facts.graph.ops if isinstance(op, Set))
        self._rows_set = {op.out: self.facts.rows(op.x) for op in sets}

    def begin(self, over: tuple[tuple[str, str], ...] = ()) -> None:
        """Start a launch: it has computed nothing and touched no memory.

        `over` are the tensors it reads and those it may write in their place.
        """
        self.made = set()
        self._busy = []
        self._over = over

    def compute(self, term: Term) -> Term:
        """Take note that a launch computed `term`."""
        self.made.add(term)
        return term

    def size(self, name: str) -> Size:
        """The rows and values of a tensor of the graph."""
        self._expected(name)
        return self.facts.rows(name), self.facts.width(name)

    # --- reading -----------------------------------------------------------------------------

    def read(self, read: Read, form: Form = "f32") -> Term:
        """The value in a tensor's memory, which must be what the graph says the tensor holds."""
        wanted = self._expected(read.tensor)
        if read.form != form:
            raise BrokenStepError(f"reads the {read.form} form of `{read.tensor}`, not {form}")
        size = self.size(read.tensor)
        if read.row is not None:
            self.require(0 <= read.row < size[0], f"reads row {read.row} of `{read.tensor}`")
            wanted = self.terms.row(wanted, Fixed(read.row), size)
        if read.tensor in self.facts.graph.carried:
            self.require(read.window is None, f"reads `{read.tensor}` as a part")
            return wanted
        for place in self._places(read.tensor, form):
            self._read_place(place, read, wanted)
        return wanted

    def _read_place(self, place: _Place, read: Read, wanted: Term) -> None:
        layout = place.layout if read.row is None else place.layout.take_row(read.row)
        follows = read.window == place.layout.window
        self.require(follows, f"reads `{read.tensor}` ({place.piece}) as if it lay otherwise")
        self._busy.append((read.tensor, place.slot))
        if not self._holds(replace(place, layout=layout), wanted):
            raise BrokenStepError(
                f"reads `{read.tensor}` ({place.piece}) where memory holds another value"
            )

    def _holds(self, place: _Place, wanted: Term) -> bool:
        """Whether memory holds a value: written whole, or row by row."""
        held = self.memory.read(place.slot, place.piece)
        if held is not None:
            return self.terms.view(held, place.size, place.layout) == wanted
        layout = place.layout
        size = (layout.rows, layout.units * layout.width)
        return all(
            self._row_held(place, layout.take_row(row)) == self.terms.row(wanted, Fixed(row), size)
            for row in range(layout.rows)
        )

    def _row_held(self, place: _Place, layout: Layout) -> Term | None:
        """What lies in memory within one row that was written by itself."""
        width = place.size[1]
        row, start = divmod(layout.offset, width)
        held = self.memory.read(place.row(row), place.piece)
        if held is None or layout.end > (row + 1) * width:
            return None
        return self.terms.view(held, (1, width), replace(layout, offset=start))

    def factor(self, x: Read, m: Matrix | Stack) -> Term:
        """The input of a product, read in the form that its matrix and the numerics ask for."""
        self.declared(m)
        self.require(
            m.rounded == self.facts.rounds(m.format, m.n), f"`{m.const}` rounds what it should not"
        )
        return self.read(x, "quant" if self.facts.reads_quant(m, x.tensor) else "f32")

    def declared(self, m: Matrix | Stack) -> None:
        """Break the step unless the graph has such a matrix, or stack of them."""
        const = self.facts.graph.consts.get(m.const)
        shape = (m.n, m.k) if isinstance(m, Matrix) else (m.count, m.n, m.k)
        known = const is not None and (const.format, const.shape) == (m.format, shape)
        self.require(known, f"`{m.const}` is no {m.format} matrix {list(shape)}")

    def cached(self, version: Version) -> Term:
        """A carried table, which must stand at a version."""
        term = self.tables.get(version.table)
        if term is None or term != self._expected(version.name):
            raise BrokenStepError(f"reads `{version.table}` while it is not `{version.name}`")
        return term

    def require(self, holds: bool, why: str) -> None:  # noqa: FBT001 - a plain assertion
        """Break the step unless something holds."""
        if not holds:
            raise BrokenStepError(why)

    def _expected(self, name: str) -> Term:
        term = self.expected.get(name)
        if term is None:
            raise BrokenStepError(f"names `{name}`, which the graph does not")
        return term

    def _buffer(self, name: str) -> Buffer:
        buffer = self.schedule.buffers.get(name)
        if buffer is None:
            raise BrokenStepError(f"touches `{name}`, which has no buffer")
        return buffer

    def _places(self, name: str, form: Form) -> Iterator[_Place]:
        """The slots of a form, and how the tensor lies in them."""
        buffer = self._buffer(name)
        own = buffer.quant if form == "quant" else buffer.f32
        layout = Layout.dense(buffer.rows, buffer.width)
        if own is None and buffer.view_of is not None:
            layout = _seen(buffer)
            buffer = self._buffer(buffer.view_of)
            self.require(
                form == "f32" or layout.whole_blocks(self.facts.coding),
                f"`{name}` is not made of whole blocks",
            )
        size = (buffer.rows, buffer.width)
        if form == "f32":
            if buffer.f32 is None:
                raise BrokenStepError(f"`{name}` has no values in memory")
            yield _Place(buffer.f32, "f32", size, layout)
            return
        if buffer.quant is None:
            raise BrokenStepError(f"`{name}` has no quantized form in memory")
        for piece, slot in buffer.quant.pieces():
            yield _Place(slot, piece, size, layout)

    # --- writing -----------------------------------------------------------------------------

    def write(self, dst: Dst, term: Term) -> None:
        """Put a result where it goes; it must be what the graph says that place then holds."""
        match dst:
            case ToBuf(tensor, f32, quant):
                self.require(
                    term == self._expected(tensor), f"writes another value than `{tensor}`"
                )
                for place in self._written(tensor, f32=f32, quant=quant):
                    dense = Layout.dense(*place.size)
                    self.require(place.layout == dense, f"writes through `{tensor}`, a view")
                    self._put(tensor, place.slot, place.piece, term)
            case ToRows(table, at, version, columns):
                self.require(table in self.tables, f"writes rows of `{table}`, no carried table")
                pitch = self.facts.width(table)
                whole = columns is None or columns.pitch == pitch
                self.require(whole, f"writes rows of `{table}` as if they were no {pitch} wide")
                first = None if columns is None else columns.first
                self.tables[table] = self._set(self.tables[table], (at, first), term, version)
            case ToEach(rows):
                self._write_each(rows, term)
            case ToScratch():
                self._write_rows(dst, term)

    def _write_each(self, rows: tuple[ToRows, ...], term: Term) -> None:
        """A row to the table of each sequence, at that sequence's position."""
        for number, row in enumerate(rows):
            mine = row.at == AtParam(self.facts.position(number)) and row.columns is None
            own = row.table.endswith(f".{number}")
            self.require(mine and own, f"sends row {number} to another sequence than its own")
            size = (len(rows), self.size(row.version)[1])
            one = self.compute(self.terms.row(term, Fixed(number), size))
            self.write(row, one)
        self.require(len(rows) == self.facts.graph.rows, "has no row for each sequence")

    def carry(self, carry: Carry, term: Term) -> None:
        """Leave a state at its next version."""
        self.cached(Version(carry.table, carry.before))
        right = term == self._expected(carry.after)
        self.require(right, f"leaves `{carry.table}` at another version than `{carry.after}`")
        self.tables[carry.table] = self.compute(term)

    def _set(self, before: Term, at: tuple[RowSel, int | None], x: Term, version: str) -> Term:
        rows = (self._rows_set.get(version, 0), self.size(version)[0])
        term = self.compute(self.terms.set(*at, rows, (before, x)))
        self.require(term == self._expected(version), f"makes another table than `{version}`")
        return term

    def _write_rows(self, dst: ToScratch, x: Term) -> None:
        """Rows of a buffer that is made row by row."""
        count = self._rows_set.get(dst.version, 1)
        wanted, size = self._expected(dst.version), self.size(dst.version)
        home = self._buffer(dst.table)
        for place in self._written(dst.table, f32=dst.f32, quant=dst.quant):
            fits = 0 <= dst.row <= place.size[0] - count and size == (home.rows, home.width)
            self.require(fits, f"writes rows of `{dst.table}` that it does not have")
            for row in range(count):
                term = self.compute(self.terms.row(x, Fixed(row), (count, size[1])))
                right = term == self.terms.row(wanted, Fixed(dst.row + row), size)
                self.require(right, f"makes another table than `{dst.version}`")
                self._put(dst.table, place.row(dst.row + row), place.piece, term)

    def _written(self, name: str, *, f32: bool, quant: bool) -> Iterator[_Place]:
        forms: tuple[tuple[Form, bool], ...] = (("f32", f32), ("quant", quant))
        for form, written in forms:
            if written:
                yield from self._places(name, form)

    def _put(self, name: str, slot: Slot, piece: Piece, term: Term) -> None:
        """Write a slot that the launch touches in no other way: its blocks run in any order."""
        apart = all(
            slot.end <= other.offset
            or other.end <= slot.offset
            or (slot == other and (read, name) in self._over)
            for read, other in self._busy
        )
        self.require(apart, f"writes `{name}` ({piece}) over memory it reads or writes besides")
        self._busy.append((name, slot))
        self.memory.write(slot, piece, term)


def _seen(view: Buffer) -> Layout:
    """How a view lies in the memory of another tensor."""
    if view.window is None:
        return replace(Layout.dense(view.rows, view.width), offset=view.offset)
    unit = view.window.width
    units, rest = divmod(view.width, unit) if unit > 0 else (0, 1)
    if rest or units < 1:
        raise BrokenStepError(f"`{view.tensor}` is no whole units of {unit}")
    window = view.window
    return Layout(view.offset, view.rows, units, window.row, window.unit, window.width)
