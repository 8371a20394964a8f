"""The calls of an engine: what is written for each, and what comes back."""

from collections.abc import Callable, Container, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bedstone.runtime.executor import Executor, Run
from bedstone.runtime.ports import Input, Inputs
from bedstone.serve.engine.abilities import Abilities
from bedstone.serve.engine.kept import Changed, Entries, Kept, Lines, table_entries, table_row
from bedstone.serve.engine.rows import LENGTH, POSITION, SLOT, TOKEN, Rows
from bedstone.serve.engine.sequence import Sequence
from bedstone.serve.engine.settings import Settings
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Fill
from bedstone.verify.protocol import Chain, Role, Shape

Found = Mapping[str, NDArray[np.generic]]


class Flight(Frozen):
    """A call under way: `count` tokens of each of `sequences`, the rows of `edition`."""

    run: Run
    program: Shape | Chain
    collect: tuple[str, ...]
    sequences: tuple[Sequence, ...]
    count: int
    edition: int

    def failed(self, found: Found) -> bool:
        """Whether the call says that its logits were not finite."""
        error = self.program.error
        return error is not None and bool(found[error].item())


@dataclass(frozen=True, slots=True)
class Fed:
    """What goes in with one call, of which the first `real` rows are somebody's.

    `tokens`, `positions` and `slots` of each row; `lengths` of each sequence once they are in;
    `bounds` [sequences + 1] are where the rows of each begin.
    """

    tokens: NDArray[np.int32]
    positions: NDArray[np.int32]
    slots: NDArray[np.int32]
    lengths: NDArray[np.int32]
    bounds: NDArray[np.int32]
    real: int


_OF_ROWS: Mapping[Fill, int] = {
    "token": TOKEN,
    "position": POSITION,
    "seq_len": LENGTH,
    "slot": SLOT,
}
"""What an input takes of the rows of a step, that is another with each."""

_FRESH: Mapping[Fill, Callable[[Fed], NDArray[np.int32]]] = {
    "position": lambda fed: fed.positions,
    "slot": lambda fed: fed.slots,
    "seq_len": lambda fed: fed.lengths,
}


class Calls:
    """The inputs of a session and the calls that read them."""

    def __init__(
        self,
        session: Executor,
        abilities: Abilities,
        rows: Rows,
        unit: int,
        cpu: Callable[[], float],
    ) -> None:
        self.device_seconds = 0.0
        self._cpu = cpu
        self._session = session
        self._abilities = abilities
        self._rows = rows
        self._unit = unit
        self._protocol = abilities.protocol
        self._inputs: dict[str, Input] = {}
        self._changed = changed = Changed()
        self._pages = [
            (t, Entries(self._input(t.buffer), changed)) for t in self._protocol.page_tables
        ]
        self._lines = [Lines(self._input(t.buffer), changed, t) for t in self._protocol.line_tables]
        self.settings = Settings(self._protocol, abilities.knobs, self._input, changed)
        self._kept: list[Kept] = [entry for _, entry in self._pages]
        self._kept += [*self._lines, *self.settings.kept]
        self._fresh = self._of_steps()
        self._checked: NDArray[np.int32] | None = None
        self._laid: tuple[Shape, int] | None = None
        self._step_of = cache(self._step_for)
        self._reads = cache(session.reads)
        self._roles = cache(self._roles_of)
        programs: Items[Shape | Chain] = (*self._protocol.shapes, *self._protocol.chains)
        self._names = {program.program: _collected(program) for program in programs}
        self._chains: dict[tuple[str, int], Chain | None] = {}
        self._counts = cache(lambda rows, groups: self._protocol.call_vars(rows, groups, longest=1))
        self._context = self._protocol.context.name if self._protocol.context else None
        self._pad = 0

    def pad_with(self, page: int) -> None:
        """Rows that belong to nobody have that page, and no line of any sequence."""
        self._pad = page
        for row in range(self._abilities.sequences):
            self._clear_row(row)

    def _clear_row(self, row: int) -> None:
        for table, entries in self._pages:
            entries.set(row, table_row(table, (self._pad,), self._unit))
        for lines in self._lines:
            lines.set(row, 0)

    def seat(self, sequence: Sequence) -> None:
        """Write down all that is kept of a sequence that has a row."""
        lease, row = sequence.lease, sequence.row
        if lease is not None:
            self._rows.hold(row, lease.pages)
            for table, entries in self._pages:
                entries.set(row, table_row(table, lease.pages, self._unit))
            for lines in self._lines:
                lines.set(row, lease.slot)
        self.settings.seat(sequence)

    def grow(self, rows: Items[int], places: Items[int], pages: Items[int]) -> None:
        """Write down pages [n] that rows [n] got as their `places` [n]."""
        at, place, page = np.array(rows), np.array(places), np.array(pages)
        self._rows.hold_more(at, place, page)
        for table, entries in self._pages:
            columns = table_entries(table, place, self._unit)
            entries.put(at, columns, table_entries(table, page, self._unit))

    def unseat(self, row: int, last: int) -> None:
        """A row is free; the last takes its place."""
        if row != last:
            for kept in self._kept:
                kept.move(last, row)
        if self._abilities.pads:
            self._clear_row(last)

    def chunk(self, sequence: Sequence, count: int) -> Flight:
        """Start a call that takes the next `count` tokens of one sequence."""
        lease, start = sequence.lease, sequence.fed
        shape = self._abilities.chunk
        last = sequence.left == count
        self._lend(sequence, drawn=last)
        at = np.arange(start, start + count, dtype=np.int32)
        pages = np.array(lease.pages if lease else (), np.int32)
        page, inside = np.divmod(at, self._unit)
        fed = Fed(
            np.array(sequence.tokens[start : start + count], np.int32),
            at,
            pages[page] * self._unit + inside if pages.size else at,
            np.array([start + count], np.int32),
            np.array([0, count], np.int32),
            count,
        )
        self._write(shape, fed)
        self._laid = None
        told = (sequence,) if last else ()
        return self._start(shape, (sequence,), told, count, self._given(count, 1, start + count))

    def step(self) -> Flight:
        """Start a call that takes the next token of every row.

        Where rows go is checked once for the steps that it was found for. Tokens that the device
        made are not, as they would not be in a chain.
        """
        rows, count = self._rows, len(self._rows)
        shape, width = self._step_of(count)
        if self._laid != (shape, count):
            self._lay(shape, count, width)
        self._changed.flush(width)
        plan, step = rows.next()
        if plan is not self._checked:
            self._fresh.require_inside(plan)
            self._checked = plan
        self._fresh.put(plan[step, :, :width])
        told = () if rows.plain() else rows.all
        return self._start(shape, rows.all, told, 1, self._given(width, width, rows.longest()))

    def follow(self, program: Shape | Chain) -> Chain | None:
        """The chain that goes on from a step of all rows."""
        if isinstance(program, Chain):
            return program
        count = len(self._rows)
        key = program.program, count
        if key not in self._chains:
            _, width = self._step_of(count)
            found = self._protocol.follow(program, width, self._reads)
            self._chains[key] = next(iter(found), None)
        return self._chains[key]

    def chain(self, chain: Chain, already: int) -> Flight:
        """Start a step that takes its inputs from the one before, `already` steps after the rows'.

        Pages that rows have got meanwhile are all that can have changed.
        """
        rows, count = self._rows, len(self._rows)
        self._changed.flush(count)
        longest = rows.longest() + already
        return self._start(chain, rows.all, (), 1, self._given(count, count, longest))

    # --- how ---

    def _input(self, buffer: str) -> Input:
        if buffer not in self._inputs:
            self._inputs[buffer] = self._session.input(buffer)
        return self._inputs[buffer]

    def _lend(self, sequence: Sequence, *, drawn: bool) -> None:
        """Write what is kept of a sequence as the first row."""
        lease = sequence.lease
        if lease is not None:
            for table, entries in self._pages:
                entries.lend(table_row(table, lease.pages, self._unit))
            for lines in self._lines:
                lines.lend(lease.slot)
        self.settings.lend(sequence, drawn=drawn)

    def _of_steps(self) -> Inputs:
        """The inputs that are others with each step, and what of its rows each of them takes."""
        read = {name for shape in self._abilities.steps for name in shape.inputs}
        roles = [r for r in self._protocol.roles if r.fill in _OF_ROWS and r.buffer in read]
        return Inputs([(self._input(r.buffer), _OF_ROWS[r.fill]) for r in roles], len(_OF_ROWS))

    def _step_for(self, count: int) -> tuple[Shape, int]:
        """The program that takes a row of each of so many, and for how many it is called."""
        shape = self._abilities.step(count)
        return shape, self._abilities.width(shape, count)

    def _lay(self, shape: Shape, count: int, width: int) -> None:
        """Write what steps of so many rows take that is the same in each."""
        none, bounds = np.zeros(width, np.int32), np.arange(width + 1, dtype=np.int32)
        fed = Fed(none, none, none, none, bounds, count)
        self._write(shape, fed, but=_OF_ROWS)
        self._laid = shape, count

    def _write(self, shape: Shape, fed: Fed, but: Container[Fill] = ()) -> None:
        """Write what a call takes beside what is kept."""
        for role in self._roles(shape):
            values = None if role.fill in but else _values(role, fed)
            if values is not None:
                target = self._input(role.buffer)
                target.values[: len(values)] = values
                target.write(len(values))

    def _roles_of(self, shape: Shape) -> tuple[Role, ...]:
        return tuple(role for role in self._protocol.roles if role.buffer in shape.inputs)

    def _given(self, rows: int, groups: int, longest: int) -> Mapping[str, int]:
        """The vars of a call."""
        given = self._counts(rows, groups)
        return given if self._context is None else {**given, self._context: longest}

    def _start(
        self,
        program: Shape | Chain,
        sequences: tuple[Sequence, ...],
        told: tuple[Sequence, ...],
        count: int,
        given: Mapping[str, int],
    ) -> Flight:
        """Start a call; more than its token is read back for those of `told` that ask for it."""
        names = self._names[program.program]
        if told:
            names += self.settings.reports(told)
        began = self._cpu()
        run = self._session.start(program.program, 1, names, **given)
        self.device_seconds += self._cpu() - began
        return Flight(run, program, names, sequences, count, self._rows.edition)

    def land(self, flight: Flight) -> Found:
        """What each output [1, ...] of a call held; waits for it.

        Raises `DeviceError`: a launch failed.
        """
        began = self._cpu()
        arrays = flight.run.wait()
        self.device_seconds += self._cpu() - began
        return dict(zip(flight.collect, arrays, strict=True))


def _collected(program: Shape | Chain) -> tuple[str, ...]:
    """The outputs that a call tells what it made by, and whether that failed."""
    emits, error = program.emits, program.error
    return (*([emits.buffer] if emits else ()), *([error] if error else ()))


def _values(role: Role, fed: Fed) -> NDArray[np.int32] | None:
    """What an input takes, or None where it is kept from call to call."""
    fresh = _FRESH.get(role.fill)
    if fresh is not None:
        return fresh(fed)
    if role.fill == "token":
        # one for each sequence is the first of its tokens
        return fed.tokens[fed.bounds[:-1]] if role.over == "groups" else fed.tokens
    if role.fill == "valid":
        return (np.arange(len(fed.tokens)) < fed.real).astype(np.int32)
    if role.fill in {"cu_seqlens", "blocks"}:
        bounds = fed.bounds if role.fill == "cu_seqlens" else fed.bounds[[0, -1]]
        return np.pad(bounds, (0, role.entries - len(bounds)), mode="edge")
    return None
