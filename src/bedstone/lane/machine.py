"""The machine that a schedule is run on with symbols for values: memory, tables and what is due.

It knows where buffers lie and what the graph says each tensor holds, and nothing of the passes that
made the schedule.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from bedstone.graph.step import Fixed, RowSel
from bedstone.lane.facts import Facts
from bedstone.lane.launch import Dst, Form, Matrix, Read, ToBuf, ToRows, ToScratch, Version
from bedstone.lane.memory import Memory, Piece
from bedstone.lane.schedule import Buffer, Schedule, Slot
from bedstone.lane.terms import Term, Terms, graph_terms


class BrokenStepError(Exception):
    """A launch that does not do what the graph says; only the verifier sees it."""


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
    _begun: set[tuple[str, Piece]] = field(default_factory=set)
    _busy: list[Slot] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.expected = graph_terms(self.terms, self.facts)
        carried = (table.name for table in self.facts.graph.tables.values() if not table.scratch)
        self.tables = {name: self.terms.source(name) for name in carried}

    def begin(self) -> None:
        """Start a launch: it has computed nothing and touched no memory."""
        self.made = set()
        self._busy = []

    def compute(self, term: Term) -> Term:
        """Take note that a launch computed `term`."""
        self.made.add(term)
        return term

    def read(self, read: Read, form: Form = "f32") -> Term:
        """The value in a tensor's memory, which must be what the graph says the tensor holds."""
        wanted = self._expected(read.tensor)
        if read.form != form:
            raise BrokenStepError(f"reads the {read.form} form of `{read.tensor}`, not {form}")
        if read.tensor not in self.facts.graph.carried:
            for slot, piece, view in self._places(read.tensor, form):
                self._busy.append(slot)
                if self._seen(slot, piece, view) != wanted:
                    raise BrokenStepError(
                        f"reads `{read.tensor}` ({piece}) where memory holds another value"
                    )
        return wanted

    def factor(self, x: Read, m: Matrix) -> Term:
        """The input of a product, read in the form that its matrix and the numerics ask for."""
        self.declared(m)
        return self.read(x, "quant" if self.facts.reads_quant(m) else "f32")

    def declared(self, m: Matrix) -> None:
        """Break the step unless the graph has such a matrix."""
        const = self.facts.graph.consts.get(m.const)
        known = const is not None and (const.format, const.shape) == (m.format, (m.n, m.k))
        self.require(known, f"`{m.const}` is no {m.format} matrix [{m.n}, {m.k}]")

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

    def _places(self, name: str, form: Form) -> Iterator[tuple[Slot, Piece, Buffer | None]]:
        """The slots of a form, and the view through which they are seen, if any."""
        buffer = self._buffer(name)
        own = buffer.quant if form == "quant" else buffer.f32
        view = None
        if own is None and buffer.view_of is not None:
            view, buffer = buffer, self._buffer(buffer.view_of)
        if form == "f32":
            if buffer.f32 is None:
                raise BrokenStepError(f"`{name}` has no values in memory")
            yield buffer.f32, "f32", view
            return
        if buffer.quant is None:
            raise BrokenStepError(f"`{name}` has no quantized form in memory")
        yield buffer.quant.codes, "codes", view
        yield buffer.quant.scales, "scales", view
        yield buffer.quant.sums, "sums", view

    def _seen(self, slot: Slot, piece: Piece, view: Buffer | None) -> Term | None:
        """The value seen in a slot, through a view of a row or of the whole."""
        held = self.memory.read(slot, piece)
        if held is None or view is None or view.view_of is None:
            return held
        whole = self._buffer(view.view_of)
        if (view.offset, view.rows) == (0, whole.rows):
            return held
        at, rest = divmod(view.offset, whole.width)
        self.require(rest == 0 and 0 <= at < whole.rows, f"`{view.tensor}` starts within a row")
        return self.terms.row(held, Fixed(at), (whole.rows, whole.width))

    def write(self, dst: Dst, term: Term) -> None:
        """Put a result where it goes; it must be what the graph says that place then holds."""
        match dst:
            case ToBuf(tensor, f32, quant):
                self.require(
                    term == self._expected(tensor), f"writes another value than `{tensor}`"
                )
                self._fill(tensor, term, f32=f32, quant=quant)
            case ToRows(table, at, version):
                self.require(table in self.tables, f"writes rows of `{table}`, no carried table")
                self.tables[table] = self._set(self.tables[table], at, term, version)
            case ToScratch(table, row, version, f32, quant):
                for form in _forms(f32=f32, quant=quant):
                    for slot, piece, _ in self._places(table, form):
                        before = self._so_far(table, slot, piece)
                        after = self._set(before, Fixed(row), term, version)
                        self._put(table, slot, piece, after)

    def _so_far(self, table: str, slot: Slot, piece: Piece) -> Term:
        """What a scratch table holds so far: nothing, before its first row is written."""
        if (table, piece) not in self._begun:
            self._begun.add((table, piece))
            return self.terms.source(table)
        held = self.memory.read(slot, piece)
        if held is None:
            raise BrokenStepError(f"writes a row of `{table}` ({piece}) after its rows were lost")
        return held

    def _set(self, before: Term, at: RowSel, x: Term, version: str) -> Term:
        term = self.compute(self.terms.of("set", at, before, x))
        self.require(term == self._expected(version), f"makes another table than `{version}`")
        return term

    def _fill(self, tensor: str, term: Term, *, f32: bool, quant: bool) -> None:
        for form in _forms(f32=f32, quant=quant):
            for slot, piece, view in self._places(tensor, form):
                self.require(view is None, f"writes through `{tensor}`, a view")
                self._put(tensor, slot, piece, term)

    def _put(self, name: str, slot: Slot, piece: Piece, term: Term) -> None:
        """Write a slot that the launch touches in no other way: its blocks run in any order."""
        apart = all(slot.end <= other.offset or other.end <= slot.offset for other in self._busy)
        self.require(apart, f"writes `{name}` ({piece}) over memory it reads or writes besides")
        self._busy.append(slot)
        self.memory.write(slot, piece, term)


def _forms(*, f32: bool, quant: bool) -> tuple[Form, ...]:
    forms: tuple[tuple[Form, bool], ...] = (("f32", f32), ("quant", quant))
    return tuple(form for form, written in forms if written)
