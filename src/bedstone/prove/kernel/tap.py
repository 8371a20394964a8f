"""Calls of ops recorded in a run of the package: their memory before, and what they left."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CallerError
from bedstone.library.mathematics import family_of
from bedstone.library.mathematics.operands import operands
from bedstone.prove.kernel.case import Judged, Posed, judge_call
from bedstone.prove.kernel.identify import Known
from bedstone.prove.kernel.pose import definition_at, tables, to_tensor
from bedstone.prove.lazy import Trial
from bedstone.prove.reference import Reference, expected_outputs
from bedstone.prove.results import Expected
from bedstone.prove.swap.drive import NAN, Side
from bedstone.prove.swap.workload import Turn
from bedstone.prove.tensors import nbytes
from bedstone.runtime.lower import Region
from bedstone.spec import formula
from bedstone.spec.axes import Shape, axis_values, shape_of
from bedstone.spec.definition import Definition
from bedstone.spec.manifest import Arg, BufArg, StateArg, StateParam

_MOST = 1 << 29
"""Bytes of a call that are recorded: its reference works on eight times as many."""

_ROWS = 64
"""Rows of recorded calls, where an op has calls of so few: references go row by row."""

_ZERO = 0
"""What states hold at first: numbers, as a reference may look at what a kernel leaves alone."""

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Site:
    """A call of an op: `index` in the program of a turn."""

    op: str
    turn: int
    index: int


@dataclass(frozen=True, slots=True)
class Tap:
    """A call's memory by parameter before it ran, and that which it writes afterwards.

    `numbers` are its scalar parameters, `axes` the sizes that only the memory tells, `shapes` those
    of each piece, in values.
    """

    site: Site
    where: str
    numbers: Mapping[str, int | float]
    axes: Mapping[str, int]
    shapes: Mapping[str, Shape]
    before: Mapping[str, Bytes]
    after: Mapping[str, Bytes]


def plan_sites(known: Sequence[Known], side: Side, turns: Sequence[Turn]) -> list[Site]:
    """Up to three calls of each op in the order of the run: early, late, and in between."""
    calls = {name: program.calls for name, program in side.manifest.programs.items()}
    found: list[Site] = []
    for each in known:
        every = [
            Site(each.name, turn, index)
            for turn, made in enumerate(turns)
            for index, call in enumerate(calls[made.program])
            if call.op == each.name
        ]
        every = [site for site in every if turns[site.turn].rows <= _ROWS] or every
        # of a span of two thirds, so that neither the turn nor the layer is that of the others
        places = sorted({0, 2 * len(every) // 3, len(every) - 1}) if every else []
        found += [every[place] for place in places]
    return sorted(found, key=lambda site: (site.turn, site.index))


def tap(side: Side, turns: Sequence[Turn], known: Mapping[str, Known]) -> list[Tap]:
    """Drive a side through the workload and record the chosen calls."""
    sites, taps = plan_sites(list(known.values()), side, turns), []
    side.open(_ZERO)
    for number, turn in enumerate(turns):
        side.begin(turn, NAN)
        at = 0
        for site in (site for site in sites if site.turn == number):
            side.stepper.run(turn.program, at, site.index, turn.vars)
            call = _Call(side, known[site.op], turn, site)
            if call.nbytes <= _MOST:
                taps.append(call.record())
            else:
                call.run()
            at = site.index + 1
        side.stepper.run(turn.program, at, side.calls(turn.program), turn.vars)
    return taps


class _Call:
    """A call about to run, and where its memory is."""

    def __init__(self, side: Side, known: Known, turn: Turn, site: Site) -> None:
        self._side, self._known, self._turn, self._site = side, known, turn, site
        call = side.manifest.programs[turn.program].calls[site.index]
        self._at = {name: _place(side, call.args[index]) for name, index in known.memory.items()}
        self._numbers = known.at(turn.vars)
        self._axes = told_axes(known, self._numbers, {n: size for n, (_, size) in self._at.items()})
        self._definition = definition_at(known, self._numbers, self._axes)
        self._shapes = {n: s for n, s in self._real_shapes() if n in self._at}

    @property
    def nbytes(self) -> int:
        """Bytes of all that is recorded."""
        return sum(map(self._nbytes, self._shapes))

    def run(self) -> None:
        """Run the call alone."""
        turn, index = self._turn, self._site.index
        self._side.stepper.run(turn.program, index, index + 1, turn.vars)

    def record(self) -> Tap:
        """Run the call; its memory before and after."""
        definition, site = self._definition, self._site
        before = {n: self._read(n) for n in definition.inputs if n in self._at}
        self.run()
        after = {n: self._read(n) for n in definition.outputs}
        where = f"program `{self._turn.program}` call {site.index}, {self._turn.rows} rows"
        return Tap(site, where, self._numbers, self._axes, self._shapes, before, after)

    def _real_shapes(self) -> Iterator[tuple[str, Shape]]:
        """As declared; a state has as many rows as it has room for."""
        definition = self._definition
        values = sizes_of(definition, self._numbers)
        for name, spec in {**definition.inputs, **definition.outputs}.items():
            shape = shape_of(spec, values) or ()
            if name in self._at and self._is_state(name):
                row = nbytes(spec.dtype, (1, *shape[1:]))
                shape = (self._at[name][1] // row, *shape[1:])
            yield name, shape

    def _is_state(self, name: str) -> bool:
        return isinstance(self._known.op.params[self._known.memory[name]], StateParam)

    def _nbytes(self, name: str) -> int:
        spec = self._definition.inputs.get(name) or self._definition.outputs[name]
        return nbytes(spec.dtype, self._shapes[name])

    def _read(self, name: str) -> Bytes:
        """A piece of memory; what of its last row lies behind the memory's end is zeros."""
        address, room = self._at[name]
        wanted = self._nbytes(name)
        data = self._side.session.loaded.device.read(address, min(wanted, room))
        return np.pad(data, (0, wanted - data.size))


def _place(side: Side, arg: Arg) -> tuple[int, int]:
    """The address of a pointer argument, and bytes from there to the end of its region."""
    if isinstance(arg, BufArg):
        region, offset = Region("buffer", arg.buf), arg.offset
    elif isinstance(arg, StateArg):
        region, offset = Region("state", arg.state), arg.offset
    else:
        raise CallerError(f"`{arg}` is given where a kernel takes a pointer")
    memory = side.session.loaded.memory[region]
    return memory.address + offset, memory.nbytes - offset


def told_axes(
    known: Known, numbers: Mapping[str, int | float], room: Mapping[str, int]
) -> dict[str, int]:
    """The sizes that no parameter tells, as many as the least of the memory has room for."""
    family = family_of(known.entry)
    whole = {n: v for n, v in {**family.defaults, **numbers}.items() if isinstance(v, int)}
    axes: dict[str, int] = {}
    for operand in operands(known.kernel, family):
        unknown = {name for text in operand.shape for name in formula.names(text)} - whole.keys()
        if operand.name in room and len(unknown) == 1:
            (name,) = unknown
            shape = tuple(formula.size(text, {**whole, name: 1}) for text in operand.shape)
            count = room[operand.name] // nbytes(operand.dtype, shape)
            axes[name] = min(count, axes.get(name, count))
    if "length" in axes and {"pages_width", "page"} <= whole.keys():
        # keys lie among other things, and what is behind them is not theirs
        axes["length"] = min(axes["length"], whole["pages_width"] * whole["page"])
    return axes


def sizes_of(definition: Definition, numbers: Mapping[str, int | float]) -> dict[str, int]:
    """Every axis of a Definition under a call's numbers."""
    return axis_values(definition, {name: int(numbers[name]) for name in definition.var_axes})


def judge_tap(known: Known, tapped: Tap) -> Judged:
    """Hold a recorded call against the reference."""
    definition = definition_at(known, tapped.numbers, tapped.axes)
    sizes = sizes_of(definition, tapped.numbers)
    outputs = tuple(expected_outputs(definition, sizes))
    inputs = tables(known) | {
        name: to_tensor(data, Expected(name, definition.inputs[name].dtype, tapped.shapes[name]))
        for name, data in tapped.before.items()
    }
    ordered = {name: inputs[name] for name in definition.inputs}
    trial = Trial(ordered, Reference(definition).run(ordered, sizes, 0))
    found = {o.name: to_tensor(tapped.after[o.name], o) for o in outputs}
    return judge_call(Posed(known, definition, outputs), tapped.where, trial, found)
