"""The calls of an engine: what is written for each, and what comes back."""

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Items
from functools import cache, lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from bedstone.pool import Lease
from bedstone.runtime.executor import Executor, Run
from bedstone.runtime.ports import Input, Inputs
from bedstone.serve.engine.abilities import Abilities
from bedstone.serve.engine.kept import Changed, Kept, Lines, Pages
from bedstone.serve.engine.rows import LENGTH, POSITION, SLOT, TOKEN, Rows
from bedstone.serve.engine.sequence import Sequence
from bedstone.serve.engine.settings import Settings
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Fill
from bedstone.verify.protocol import Chain, Role, Shape

Found = Mapping[str, NDArray[np.generic]]


class Flight(Frozen):
    """A call under way: `counts` tokens of each of `sequences`, or all rows of `edition`."""

    run: Run
    program: Shape | Chain
    collect: tuple[str, ...]
    sequences: tuple[Sequence, ...]
    counts: tuple[int, ...]
    edition: int

    def failed(self, found: Found) -> bool:
        """Whether the call says that it failed, as it does where logits were not finite."""
        error = self.program.error
        return error is not None and bool(found[error].item())

    def fault(self, found: Found) -> str:
        """What the call says of that."""
        error = self.program.error or ""
        said = f"program `{self.program.program}` set `{error}` to {found[error].item()}"
        return f"logits were not finite: {said}"


class Sizes(Frozen):
    """How many rows and sequences a call of a program takes; the first `real` are somebody's.

    `lengths` are how many rows each sequence has, where they differ.
    """

    program: str
    rows: int
    groups: int
    real: int
    lengths: tuple[int, ...] = ()

    @property
    def bounds(self) -> NDArray[np.int32]:
        """Where the rows of each sequence begin, and those of the last end."""
        if self.lengths:
            return np.array([0, *accumulate(self.lengths)], np.int32)
        return np.arange(self.groups + 1, dtype=np.int32) * (self.rows // self.groups)


_OF_ROWS: Mapping[Fill, int] = {
    "token": TOKEN,
    "position": POSITION,
    "seq_len": LENGTH,
    "slot": SLOT,
}
"""What an input takes of the rows of a step, that is another with each."""

_OF_SIZES: Mapping[Fill, Callable[[Role, Sizes], NDArray[np.int32]]] = {
    "valid": lambda _, sizes: (np.arange(sizes.rows) < sizes.real).astype(np.int32),
    "cu_seqlens": lambda role, sizes: _padded(role, sizes.bounds),
    "blocks": lambda role, sizes: _padded(role, sizes.bounds[[0, -1]]),
}
"""What an input takes that is the same in all calls of a size."""

_MOST_SIZES = 256


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
            Pages(self._input(t.buffer), changed, t, unit) for t in self._protocol.page_tables
        ]
        self._lines = [Lines(self._input(t.buffer), changed, t) for t in self._protocol.line_tables]
        self.settings = Settings(self._protocol, abilities.knobs, self._input)
        self._kept: list[Kept] = [*self._pages, *self._lines]
        self._fresh = self._of_steps()
        self._laid: Sizes | None = None
        self._same = lru_cache(_MOST_SIZES)(self._of_sizes)
        self._step_of = cache(self._step_for)
        self._reads = cache(session.reads)
        programs: Items[Shape | Chain] = (*self._protocol.shapes, *self._protocol.chains)
        self._names = {program.program: _collected(program) for program in programs}
        self._chains: dict[tuple[str, int], Chain | None] = {}
        self._counts = cache(lambda rows, groups: self._protocol.call_vars(rows, groups, longest=1))
        self._context = self._protocol.context.name if self._protocol.context else None
        self.pad = 0

    def pad_with(self, page: int) -> None:
        """Rows that belong to nobody have that page, and no line of any sequence."""
        self.pad = page
        self._require_slots((page,))
        for row in range(self._abilities.sequences):
            self._clear_row(row)

    def _clear_row(self, row: int) -> None:
        for table in self._pages:
            table.set(row, (self.pad,))
        for lines in self._lines:
            lines.set(row, 0)

    def seat(self, sequence: Sequence) -> None:
        """Give a sequence a row, and write down all that is kept of it."""
        lease, at = sequence.lease, sequence.fed
        pages = lease.pages if lease else ()
        fresh, last = self._fresh, sequence.tokens[-1]
        fresh.require_between(TOKEN, last, last)
        fresh.require_between(POSITION, at, sequence.most - 1)
        fresh.require_between(LENGTH, at + 1, sequence.most)
        self._require_slots(pages)
        row = self._rows.add(sequence, pages)
        if lease is not None:
            for table in self._pages:
                table.set(row, pages)
            for lines in self._lines:
                lines.set(row, lease.slot)
        self.settings.seat(sequence)

    def grow(self, rows: Items[int], places: Items[int], pages: Items[int]) -> None:
        """Write down pages [n] that rows [n] got as their `places` [n], of one row in order."""
        if not rows:
            return
        self._require_slots(pages)
        for row, page in zip(rows, pages, strict=True):
            self._rows.grow(row, (page,))
        each = np.array((rows, places, pages))
        for table in self._pages:
            table.grow(*each)

    def _require_slots(self, pages: Items[int]) -> None:
        """Accept steps of a row that has these pages."""
        if pages:
            first, last = min(pages) * self._unit, (max(pages) + 1) * self._unit - 1
            self._fresh.require_between(SLOT, first, last)

    def unseat(self, row: int, last: int) -> None:
        """A row is free; the last takes its place."""
        if row != last:
            for kept in self._kept:
                kept.move(last, row)
            self.settings.move(last, row)
        if self._abilities.pads:
            self._clear_row(last)

    def lend(self, leases: Items[Lease | None]) -> None:
        """Write tables as the first rows of the next call alone; None are nobody's."""
        pages = [(self.pad,) if lease is None else lease.pages for lease in leases]
        for table in self._pages:
            table.lend(*pages)
        slots = [0 if lease is None else lease.slot for lease in leases]
        for lines in self._lines:
            lines.lend(*slots)

    def step(self) -> Flight:
        """Start a call that takes the next token of every row.

        Where rows go was checked when they came and grew. Tokens that the device made are not, as
        they would not be in a chain.
        """
        rows, count = self._rows, len(self._rows)
        shape, width = self._step_of(count)
        self.lay(Sizes(shape.program, width, width, count))
        self.flush(width)
        self._fresh.put(rows.next()[:, :width])
        told = rows.all if rows.slow else ()
        return self.start(shape, rows.all, told, (), self.given(width, width, rows.longest()))

    def follow(self, program: Shape | Chain) -> Chain | None:
        """The chain that goes on from a step of all rows."""
        if isinstance(program, Chain):
            return program
        count = len(self._rows)
        key = program.program, count
        if key not in self._chains:
            width = self._abilities.width(program, count)
            found = self._protocol.follow(program, width, self._reads)
            self._chains[key] = next((c for c in found if self._is_free(c)), None)
        return self._chains[key]

    def chain(self, chain: Chain, already: int) -> Flight:
        """Start a step that takes its inputs from the one before, `already` steps after the rows'.

        Pages that rows have got meanwhile are all that can have changed.
        """
        rows, count = self._rows, len(self._rows)
        self._changed.flush(count)
        longest = rows.longest() + already
        size = count if chain.count is None else count * chain.rows
        return self.start(chain, rows.all, (), (), self.given(size, count, longest))

    def flush(self, rows: int) -> None:
        """Write what changed of what is kept of the first rows."""
        self._changed.flush(rows)
        self.settings.flush(rows)

    def inputs_of(self, program: str) -> list[tuple[Input, Role]]:
        """The inputs with a fill that a program reads."""
        shape = self._protocol.shape(program)
        read = shape.inputs if shape else ()
        return [(self._input(r.buffer), r) for r in self._protocol.roles if r.buffer in read]

    def lay(self, sizes: Sizes) -> None:
        """Write what all calls of a size take, unless the last call was of that size."""
        if sizes != self._laid:
            for target, values in self._same(sizes):
                target.put(values)
            self._laid = sizes

    def given(self, rows: int, groups: int, longest: int) -> Mapping[str, int]:
        """The vars of a call."""
        given = self._counts(rows, groups)
        return given if self._context is None else {**given, self._context: longest}

    def start(
        self,
        program: Shape | Chain,
        sequences: tuple[Sequence, ...],
        told: tuple[Sequence, ...],
        counts: tuple[int, ...],
        given: Mapping[str, int],
    ) -> Flight:
        """Start a call; more than its token is read back for those of `told` that ask for it."""
        names = self._names[program.program]
        if told:
            names += self.settings.reports(told)
        began = self._cpu()
        run = self._session.start(program.program, 1, names, **given)
        self.device_seconds += self._cpu() - began
        return Flight(run, program, names, sequences, counts, self._rows.edition)

    def land(self, flight: Flight) -> Found:
        """What each output [1, ...] of a call held; waits for it.

        Raises `DeviceError`: a launch failed.
        """
        began = self._cpu()
        arrays = flight.run.wait()
        self.device_seconds += self._cpu() - began
        return dict(zip(flight.collect, arrays, strict=True))

    # --- how ---

    def _input(self, buffer: str) -> Input:
        if buffer not in self._inputs:
            self._inputs[buffer] = self._session.input(buffer)
        return self._inputs[buffer]

    def _of_steps(self) -> Inputs:
        """The inputs that are others with each step, and what of its rows each of them takes."""
        able = self._abilities
        read = {name for shape in (*able.steps, *able.rounds) for name in shape.inputs}
        roles = [r for r in self._protocol.roles if r.fill in _OF_ROWS and r.buffer in read]
        return Inputs([(self._input(r.buffer), _OF_ROWS[r.fill]) for r in roles])

    def _is_free(self, chain: Chain) -> bool:
        """Whether nothing of a chain's run is known only once the one before is over."""
        return chain.count is None or self._context not in self._reads(chain.program)

    def _step_for(self, count: int) -> tuple[Shape, int]:
        """The program that takes a row of each of so many, and for how many it is called."""
        shape = self._abilities.step(count)
        return shape, self._abilities.width(shape, count)

    def _of_sizes(self, sizes: Sizes) -> list[tuple[Input, NDArray[np.int32]]]:
        found = []
        for target, role in self.inputs_of(sizes.program):
            how = _OF_SIZES.get(role.fill)
            if how is not None:
                values = how(role, sizes)
                target.require_inside(values)
                found.append((target, values))
        return found


def _collected(program: Shape | Chain) -> tuple[str, ...]:
    """The outputs that a call tells what it made by, how much, and whether that failed."""
    emits = program.emits.buffer if program.emits else None
    found = (emits, program.count, program.error)
    return tuple(name for name in found if name is not None)


def _padded(role: Role, bounds: NDArray[np.int32]) -> NDArray[np.int32]:
    """Bounds as all entries of an input, the last repeated."""
    return np.pad(bounds, (0, role.entries - len(bounds)), mode="edge")
