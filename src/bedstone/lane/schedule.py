"""A step lowered: its launches in order, its buffers, and why the launches are what they are."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from bedstone.graph.step import Carried, Const, FormName, RopeTable, Table
from bedstone.lane.launch import Launch
from bedstone.lane.operand import Rows, Upto, Window
from bedstone.library.coding import GEMV_ROWS, INT8, Coding

QBLOCK = INT8.block
"""The values of a quantized activation that share one scale on a CPU."""

MAX_CHUNK = 512
"""The most rows of a prefill chunk, where a device's knobs say no other."""

Numerics = Literal["precise", "quantized"]
Piece = Literal["f32", "codes", "scales", "sums"]
Reason = Literal[
    "reader", "escape", "convex", "version", "same_x", "shape", "format", "shim", "held"
]


@dataclass(frozen=True, slots=True)
class Step:
    """A launch and the graph ops it computes: none for a quantize.

    `nodes` name what the optimizer left that it is a launch of, or one of the launches of.
    """

    launch: Launch
    ops: tuple[int, ...]
    nodes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Fusion:
    """A rule that fired, and the graph ops it joined."""

    rule: str
    ops: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Miss:
    """A rule whose pattern matched at graph op `op` and that did not fire, and why."""

    rule: str
    op: int
    reason: Reason
    why: str


@dataclass(frozen=True, slots=True)
class Slot:
    """Bytes of the arena."""

    offset: int
    nbytes: int

    @property
    def end(self) -> int:
        """The first byte after the slot."""
        return self.offset + self.nbytes


@dataclass(frozen=True, slots=True)
class QuantSlots:
    """A coded form: codes [rows, width], and a scale (f32) and a sum (i32) a block, if scaled."""

    codes: Slot
    scales: Slot | None = None
    sums: Slot | None = None

    def pieces(self) -> Iterator[tuple[Piece, Slot]]:
        """The slots there are, by what they hold."""
        yield "codes", self.codes
        if self.scales is not None:
            yield "scales", self.scales
        if self.sums is not None:
            yield "sums", self.sums


@dataclass(frozen=True, slots=True)
class Buffer:
    """Where a computed tensor [rows, width] lives: either form, both, or inside another tensor.

    A view starts `offset` elements into the tensor `view_of`, which is no view itself, and has no
    f32 slot of its own; `window` says how its rows lie there, if not in order. Its quantized form
    lies in its parent's when it is made of whole blocks. A version of a scratch table is a view of
    the table. `live` names the param that counts the rows that hold something, if not all do.
    What lies `beside` another tensor starts where that one ends.
    """

    tensor: str
    rows: int
    width: int
    dtype: Literal["f32", "i32"]
    f32: Slot | None = None
    quant: QuantSlots | None = None
    view_of: str | None = None
    offset: int = 0
    window: Window | None = None
    live: str | None = None
    beside: str | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """A step graph lowered under one numerics: what `build` emits and the oracle can execute.

    `rows` is the most rows a step takes; where `row_param` names a param, launches of that many
    rows take as many as the param says. `unshared_bytes` is what the buffers would take if none
    shared memory.
    """

    model: str
    form: FormName
    numerics: Numerics
    coding: Coding
    rows: int
    row_param: str | None
    steps: tuple[Step, ...]
    buffers: Mapping[str, Buffer]
    fusions: tuple[Fusion, ...]
    misses: tuple[Miss, ...]
    arena_bytes: int
    unshared_bytes: int
    consts: Mapping[str, Const]
    tables: Mapping[str, Table]
    carried: Mapping[str, Carried]
    ropes: Mapping[str, RopeTable]
    params: tuple[str, ...]
    outputs: tuple[str, ...]

    def row_count(self, rows: Rows) -> int | str:
        """The rows of a launch in one run: a number, or the param that gives it."""
        if isinstance(rows, Upto):
            return rows.param
        if self.row_param is not None and rows == self.rows:
            return self.row_param
        return rows


def code_sizes(values: int, coding: Coding) -> dict[Piece, int]:
    """The bytes that each piece of a coded form takes for so many values."""
    codes: dict[Piece, int] = {"codes": values * coding.code_bytes}
    if coding.scaled:
        codes |= dict.fromkeys(("scales", "sums"), 4 * (values // coding.block))
    return codes


__all__ = ["GEMV_ROWS", "QBLOCK"]
