"""The manifest's buffers of a model's constants: matrices as they are held, vectors as f32."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from bedstone.build.operand import Vector, Weight
from bedstone.build.operands import operands
from bedstone.graph.step import Const
from bedstone.lane.schedule import Schedule
from bedstone.spec.dtype import FORMATS
from bedstone.spec.manifest import Buffer, Segment


@dataclass(frozen=True, slots=True)
class Cast:
    """Values of a buffer that another holds as f32, cast once by the kernel `entry`."""

    entry: str
    source: str
    target: str
    count: int


@dataclass(frozen=True, slots=True)
class Laying:
    """A matrix of `rows` rows of `width` bytes, held once more as the kernel `entry` lays it."""

    entry: str
    source: str
    target: str
    rows: int
    width: int


@dataclass(slots=True)
class WeightTable:
    """The buffers of constants so far, and the casts and layings that fill some of them.

    `binds` says which rows of the checkpoint's tensors each constant is made of; `vectors` names
    the buffer of each constant that a kernel reads as f32, `laid` has those of matrices that some
    kernels read otherwise than they are held.
    """

    binds: Mapping[str, tuple[Segment, ...]]
    buffers: dict[str, Buffer] = field(default_factory=dict)
    casts: list[Cast] = field(default_factory=list)
    vectors: dict[str, str] = field(default_factory=dict)
    laid: dict[str, Laying] = field(default_factory=dict)

    def declare(self, schedule: Schedule) -> None:
        """Add the constants that the kernels of `schedule` read."""
        for step in schedule.steps:
            for operand in operands(step.launch).values():
                if isinstance(operand, Weight):
                    self._matrix(schedule.consts[operand.const])
                elif isinstance(operand, Vector):
                    self._vector(schedule.consts[operand.const])

    def lay(self, name: str, entry: str) -> str:
        """The buffer that holds a declared matrix once more, as the kernel `entry` lays it."""
        target, own = f"laid.{name}", self.buffers[name]
        rows, width = (int(extent) for extent in own.shape)
        self.buffers[target] = Buffer(own.dtype, own.shape, "carry")
        self.laid[name] = Laying(entry, name, target, rows, width)
        return target

    def matrix_bytes(self, schedule: Schedule) -> int:
        """Bytes of the quantized matrices that the kernels of a declared schedule read."""
        read = (o for step in schedule.steps for o in operands(step.launch).values())
        names = {operand.const for operand in read if isinstance(operand, Weight)}
        held = (n for n in names if FORMATS[schedule.consts[n].format].quantized)
        return sum(math.prod(map(int, self.buffers[name].shape)) for name in held)

    def _matrix(self, const: Const) -> None:
        form = FORMATS[const.format]
        rows, width = math.prod(const.shape[:-1]), const.shape[-1]
        wide = form.row_bytes(width) if form.quantized else width
        shape = (rows, wide) if len(const.shape) != 2 or form.quantized else const.shape
        bind = self.binds[const.name]
        self.buffers[const.name] = Buffer(form.dtype, shape, "weight", bind=bind)

    def _vector(self, const: Const) -> None:
        """Values that a kernel reads as f32; others than f32 are cast once."""
        if const.name in self.vectors:
            return
        form, bind = FORMATS[const.format], self.binds[const.name]
        self.vectors[const.name] = const.name
        if form.dtype == "f32":
            self.buffers[const.name] = Buffer("f32", const.shape, "weight", bind=bind)
            return
        raw = f"raw.{const.name}"
        target = const.name if len(const.shape) == 1 else f"f32.{const.name}"
        self.vectors[const.name] = target
        self.buffers[raw] = Buffer(form.dtype, const.shape, "source", bind=bind)
        self.buffers[target] = Buffer("f32", const.shape, "carry")
        self.casts.append(Cast(f"cast_{const.format}_f32", raw, target, math.prod(const.shape)))
