"""The calls of an engine: what is written for each, and what comes back."""

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bedstone.runtime.executor import Executor, Run
from bedstone.runtime.ports import Input
from bedstone.serve.engine.abilities import Abilities
from bedstone.serve.engine.kept import Entries, Kept, Lines, table_entries, table_row
from bedstone.serve.engine.rows import Rows
from bedstone.serve.engine.sequence import Sequence
from bedstone.serve.engine.settings import Settings
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Fill
from bedstone.verify.protocol import Chain, Role, Shape

Found = Mapping[str, NDArray[np.generic]]


class Flight(Frozen):
    """A call under way: `count` tokens of each of `sequences`, the rows of `edition`.

    `last` says that the token after them is wanted.
    """

    run: Run
    program: Shape | Chain
    collect: tuple[str, ...]
    sequences: tuple[Sequence, ...]
    count: int
    edition: int
    last: bool

    def failed(self, found: Found) -> bool:
        """Whether the call says that its logits were not finite."""
        error = self.program.error
        return error is not None and any(found[error].reshape(-1).tolist())


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
        self._pages = [(t, Entries(self._input(t.buffer))) for t in self._protocol.page_tables]
        self._lines = [Lines(self._input(t.buffer), t) for t in self._protocol.line_tables]
        self.settings = Settings(self._protocol, abilities.knobs, self._input)
        self._kept: list[Kept] = [entry for _, entry in self._pages]
        self._kept += [*self._lines, *self.settings.kept]
        self._reads = cache(session.reads)
        self._named = cache(_collected)
        self._counts = cache(lambda rows, groups: self._protocol.call_vars(rows, groups, longest=1))
        self._context = self._protocol.context.name if self._protocol.context else None
        self._grown = False
        self._pad = (0, 0)

    def pad_with(self, page: int) -> None:
        """Rows that belong to nobody write there, and to no line of any sequence."""
        self._pad = (page, page * self._unit)
        for row in range(self._abilities.sequences):
            self._clear_row(row)

    def _clear_row(self, row: int) -> None:
        page = self._pad[0]
        for table, entries in self._pages:
            entries.set(row, table_row(table, (page,), self._unit))
        for lines in self._lines:
            lines.set(row, 0)

    def seat(self, sequence: Sequence) -> None:
        """Write down all that is kept of a sequence that has a row."""
        self.repage(sequence)
        if sequence.lease is not None:
            for lines in self._lines:
                lines.set(sequence.row, sequence.lease.slot)
        self.settings.seat(sequence)

    def repage(self, sequence: Sequence) -> None:
        """Write down which pages a sequence with a row has."""
        lease, row = sequence.lease, sequence.row
        if lease is None or not self._pages:
            self._rows.hold(row, None, self._unit)
            return
        pages = lease.pages
        self._rows.hold(row, pages, self._unit)
        for table, entries in self._pages:
            entries.set(row, table_row(table, pages, self._unit))

    def grow(self, more: Items[tuple[int, int, int]]) -> None:
        """Write down pages that rows got: of each its row, its place in that and its number."""
        if not more or not self._pages:
            return
        rows, places, pages = np.array(more).T
        self._rows.hold_more(rows, places, pages, self._unit)
        for table, entries in self._pages:
            columns = table_entries(table, places, self._unit)
            entries.put(rows, columns, table_entries(table, pages, self._unit))
        self._grown = True

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
        return self._start(shape, (sequence,), count, 1, start + count, last=last)

    def step(self) -> Flight:
        """Start a call that takes the next token of every row."""
        rows, count = self._rows, len(self._rows)
        shape = self._abilities.step(count)
        width = self._abilities.width(shape, count)
        for kept in self._kept:
            kept.flush(width)
        self._grown = False
        self._write(shape, self._fed(count, width))
        return self._start(shape, rows.all, 1, width, rows.longest(), last=True)

    def follow(self, shape: Shape | Chain | None) -> Chain | None:
        """The chain that goes on from a step of all rows."""
        if isinstance(shape, Chain) or shape is None:
            return shape
        width = self._abilities.width(shape, len(self._rows))
        return next(iter(self._protocol.follow(shape, width, self._reads)), None)

    def chain(self, chain: Chain, already: int) -> Flight:
        """Start a step that takes its inputs from the one before, `already` steps after the rows'.

        Pages that rows have got meanwhile are all that can have changed.
        """
        rows, count = self._rows, len(self._rows)
        if self._grown:
            self._grown = False
            for _, entries in self._pages:
                entries.flush(count)
        return self._start(chain, rows.all, 1, count, rows.longest() + already, last=True)

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

    def _fed(self, count: int, width: int) -> Fed:
        """The rows' next tokens, and padding up to `width`."""
        rows, pads = self._rows, width - count
        at = rows.positions[:count]
        slots = rows.slots(self._unit) if self._pages else at
        tokens = rows.tokens[:count]
        if pads:
            zeros = np.zeros(pads, np.int32)
            tokens, at = np.concatenate([tokens, zeros]), np.concatenate([at, zeros])
            slots = np.concatenate([slots, zeros + np.int32(self._pad[1])])
        return Fed(tokens, at, slots, at + 1, np.arange(width + 1, dtype=np.int32), count)

    def _write(self, shape: Shape, fed: Fed) -> None:
        """Write what a call takes beside what is kept."""
        for role in self._roles(shape):
            values = _values(role, fed)
            if values is not None:
                target = self._input(role.buffer)
                target.values[: len(values)] = values
                target.write(len(values))

    def _roles(self, shape: Shape) -> tuple[Role, ...]:
        return tuple(role for role in self._protocol.roles if role.buffer in shape.inputs)

    def _start(
        self,
        program: Shape | Chain,
        sequences: tuple[Sequence, ...],
        count: int,
        width: int,
        longest: int,
        *,
        last: bool,
    ) -> Flight:
        names = self._named(program)
        if last and isinstance(program, Shape) and any(s.slow for s in sequences):
            names += self.settings.reports(sequences)
        given = self._counts(count * width, width)
        if self._context is not None:
            given = {**given, self._context: longest}
        began = self._cpu()
        run = self._session.start(program.program, 1, names, **given)
        self.device_seconds += self._cpu() - began
        return Flight(run, program, names, sequences, count, self._rows.edition, last)

    def land(self, flight: Flight) -> Found:
        """What each output of a call held; waits for it.

        Raises `DeviceError`: a launch failed.
        """
        began = self._cpu()
        arrays = flight.run.wait()
        self.device_seconds += self._cpu() - began
        return {name: array[0] for name, array in zip(flight.collect, arrays, strict=True)}


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
