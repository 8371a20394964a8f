"""Where the operands of a step lie: the manifest's buffers and states, and offsets into them.

A v7 buffer has one element type, so the lane's arena becomes one workspace buffer for each type a
slot is read as. Workspaces are dead between runs and shared by all programs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bedstone.build.operand import (
    Cache,
    Io,
    Operand,
    Quant,
    Role,
    Rotation,
    Values,
    Vector,
    Weight,
    Whole,
)
from bedstone.errors import CallerError
from bedstone.lane.schedule import Buffer as LaneBuffer
from bedstone.lane.schedule import Schedule, Slot, code_sizes
from bedstone.spec.dtype import DTYPE_BYTES, DType
from bedstone.spec.manifest import Arg, BufArg, Buffer, StateArg

_BLOCK_DTYPE: dict[str, DType] = {"scales": "f32", "sums": "i32"}
"""What stands beside scaled codes."""


@dataclass(slots=True)
class Workspace:
    """The most bytes each element type's workspace is asked for."""

    bytes: dict[DType, int] = field(default_factory=dict)

    def place(self, dtype: DType, slot: Slot, offset: int) -> BufArg:
        """The argument for `offset` bytes into `slot`, read as `dtype`."""
        self.bytes[dtype] = max(self.bytes.get(dtype, 0), slot.end)
        return BufArg(f"work.{dtype}", slot.offset + offset)

    def buffers(self) -> dict[str, Buffer]:
        """The workspace buffers, by name."""
        return {
            f"work.{dtype}": Buffer(dtype, (-(-size // DTYPE_BYTES[dtype]),), "workspace")
            for dtype, size in self.bytes.items()
        }


@dataclass(frozen=True, slots=True)
class Placement:
    """Places the operands of one program's calls.

    `roles` names the buffer that plays each role of the step's protocol, `outputs` the buffers that
    stand for tensors a caller reads, `constants` those that hold constants as f32.
    """

    schedule: Schedule
    workspace: Workspace
    roles: Mapping[Role, str]
    outputs: Mapping[str, str]
    constants: Mapping[str, str]

    def __call__(self, operand: Operand) -> Arg:
        """The argument for a buffer or state operand.

        Raises `CallerError`: the operand is a number, or names a tensor the schedule gives no
        memory.
        """
        match operand:
            case Cache(table):
                arg: Arg = StateArg(state_of(table, self.schedule))
            case Weight(name) | Whole(name):
                arg = BufArg(name)
            case Vector(name):
                arg = BufArg(self.constants.get(name, name))
            case Rotation(table, of):
                arg = BufArg(f"{table}.{of}")
            case Io(role):
                arg = BufArg(self.roles[role])
            case Values():
                arg = self._values(operand)
            case Quant():
                arg = self._quant(operand)
            case _:
                raise CallerError(f"operand `{operand}` is a number, expected memory")
        return arg

    def _values(self, operand: Values) -> BufArg:
        buffer, parent, offset = self._resolve(operand.tensor, operand.row)
        at = 4 * (offset + operand.start)
        if parent.tensor in self.outputs:
            return BufArg(self.outputs[parent.tensor], at)
        return self.workspace.place(buffer.dtype, _required(parent.f32, operand.tensor), at)

    def _quant(self, operand: Quant) -> BufArg:
        own = self.schedule.buffers.get(operand.tensor)
        buffer, parent, offset = self._resolve(operand.tensor, operand.row)
        if own is not None and own.quant is not None:
            parent, offset = own, operand.row * buffer.width
        quant = parent.quant
        if quant is None:
            raise CallerError(f"tensor `{operand.tensor}` has no quantized form")
        coding, piece = self.schedule.coding, operand.piece
        slot = dict(quant.pieces()).get(piece)
        if slot is None:
            raise CallerError(f"the codes of `{operand.tensor}` have no {piece}")
        at = code_sizes(offset, coding)[piece]
        return self.workspace.place(_BLOCK_DTYPE.get(piece, coding.dtype), slot, at)

    def _resolve(self, tensor: str, row: int) -> tuple[LaneBuffer, LaneBuffer, int]:
        """A tensor's record, the record that owns its memory, and the elements to a row of it."""
        buffer = self.schedule.buffers.get(tensor)
        if buffer is None:
            raise CallerError(f"tensor `{tensor}` has no buffer in the schedule")
        pitch = buffer.width if buffer.window is None else buffer.window.row
        offset = buffer.offset + row * pitch
        if buffer.view_of is None:
            return buffer, buffer, offset
        return buffer, self.schedule.buffers[buffer.view_of], offset


def state_of(table: str, schedule: Schedule) -> str:
    """The state that holds a table; a batch's tables end in the number of their sequence."""
    return table.rpartition(".")[0] if schedule.form == "batch" else table


def _required(slot: Slot | None, tensor: str) -> Slot:
    if slot is None:
        raise CallerError(f"tensor `{tensor}` has no f32 form")
    return slot
