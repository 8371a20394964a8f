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
)
from bedstone.errors import CallerError
from bedstone.lane.schedule import Buffer as LaneBuffer
from bedstone.lane.schedule import Schedule, Slot
from bedstone.spec.dtype import DTYPE_BYTES, DType
from bedstone.spec.manifest import Arg, BufArg, Buffer, StateArg

_PIECE_DTYPE: dict[str, DType] = {"codes": "i8", "scales": "f32", "sums": "i32"}


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
    stand for tensors a caller reads.
    """

    schedule: Schedule
    workspace: Workspace
    roles: Mapping[Role, str]
    outputs: Mapping[str, str]

    def __call__(self, operand: Operand) -> Arg:
        """The argument for a buffer or state operand.

        Raises `CallerError`: the operand is a number, or names a tensor the schedule gives no
        memory.
        """
        match operand:
            case Cache(table):
                return StateArg(table)
            case Weight(name) | Vector(name):
                return BufArg(name)
            case Rotation(table, of):
                return BufArg(f"{table}.{of}")
            case Io(role):
                return BufArg(self.roles[role])
            case Values(tensor):
                return self._values(tensor)
            case Quant(tensor, piece):
                return self._quant(tensor, piece)
            case _:
                raise CallerError(f"operand `{operand}` is a number, expected memory")

    def _values(self, tensor: str) -> BufArg:
        if tensor in self.outputs:
            return BufArg(self.outputs[tensor])
        buffer, parent, offset = self._resolve(tensor)
        if parent.tensor in self.outputs:
            return BufArg(self.outputs[parent.tensor], offset * 4)
        return self.workspace.place(buffer.dtype, _required(parent.f32, tensor), offset * 4)

    def _quant(self, tensor: str, piece: str) -> BufArg:
        _, parent, offset = self._resolve(tensor)
        quant = parent.quant
        if quant is None:
            raise CallerError(f"tensor `{tensor}` has no quantized form")
        slots = {"codes": quant.codes, "scales": quant.scales, "sums": quant.sums}
        at = offset if piece == "codes" else offset // 32 * 4
        return self.workspace.place(_PIECE_DTYPE[piece], slots[piece], at)

    def _resolve(self, tensor: str) -> tuple[LaneBuffer, LaneBuffer, int]:
        """A tensor's record, the record that owns its memory, and the elements between."""
        buffer = self.schedule.buffers.get(tensor)
        if buffer is None:
            raise CallerError(f"tensor `{tensor}` has no buffer in the schedule")
        if buffer.view_of is None:
            return buffer, buffer, 0
        return buffer, self.schedule.buffers[buffer.view_of], buffer.offset


def _required(slot: Slot | None, tensor: str) -> Slot:
    if slot is None:
        raise CallerError(f"tensor `{tensor}` has no f32 form")
    return slot
