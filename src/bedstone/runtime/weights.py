"""Where each byte of a weight buffer comes from in the checkpoint.

Planning is pure. A tensor is seen as a matrix: its first axis by the product of the others, a
vector as one row. Rows of a quantized format are matrices of `u8` whose columns count bytes. The
segments of a buffer lie end to end in it and fill it exactly, whatever its shape.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bedstone.checkpoint.tensors import TensorInfo
from bedstone.errors import WeightError
from bedstone.runtime.device import Stored, Upload
from bedstone.spec.dtype import DTYPE_BYTES, FORMATS, DType
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import (
    Buffer,
    Interleave,
    Ranges,
    RankedRanges,
    RankedTensors,
    Segment,
    TensorSource,
)

_MOST_PROBLEMS = 8


class Checkpoint(Protocol):
    """What the runtime asks of an open checkpoint."""

    @property
    def tensors(self) -> Mapping[str, TensorInfo]:
        """Every readable tensor by its own name."""

    def raw(self, info: TensorInfo) -> NDArray[np.uint8]:
        """A tensor's bytes where the file is mapped."""

    def file(self, info: TensorInfo) -> tuple[Path, int] | None:
        """The file that holds a tensor's bytes as they are, and where; None if none does."""


class Copy(Frozen):
    """`rows` rows of `width` bytes, `source_pitch` apart in a tensor, `target_pitch` in the buffer.

    `source` and `target` are where the first row starts. Rows without gaps on either side are one.
    """

    tensor: str
    source: int
    source_pitch: int
    target: int
    target_pitch: int
    rows: int
    width: int


class WeightPlan(Frozen):
    """The copies that fill a buffer of `nbytes` bytes."""

    buffer: str
    nbytes: int
    copies: tuple[Copy, ...]

    @property
    def run(self) -> Copy | None:
        """The one copy of one run of bytes that is the whole buffer, if that is the plan."""
        only = self.copies[0] if len(self.copies) == 1 else None
        return only if only is not None and only.rows == 1 else None


class _Matrix(Frozen):
    name: str
    dtype: DType
    rows: int
    cols: int

    @property
    def row_bytes(self) -> int:
        return self.cols * DTYPE_BYTES[self.dtype]


def plan_weights(
    buffers: Mapping[str, tuple[Buffer, int]],
    tensors: Mapping[str, TensorInfo],
    ranks: Mapping[str, int],
) -> dict[str, WeightPlan]:
    """A plan for each weight or source given with its bytes; `ranks` is our index in each group.

    Raises `WeightError`: a tensor is missing or does not fit; the message lists every such fault.
    """
    plans: dict[str, WeightPlan] = {}
    problems: list[str] = []
    for name, (buffer, nbytes) in buffers.items():
        try:
            plans[name] = _plan_weight(name, buffer, nbytes, _Source(tensors, ranks))
        except WeightError as error:
            problems.append(str(error))
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        tail = [f"and {more} more"] if more > 0 else []
        raise WeightError("; ".join([*problems[:_MOST_PROBLEMS], *tail]))
    return plans


def uploads(plan: WeightPlan, address: int, stored: Callable[[str], Stored]) -> Iterator[Upload]:
    """The copies of `plan` into a buffer at `address`."""
    for copy in plan.copies:
        yield Upload(
            stored=stored(copy.tensor),
            source=copy.source,
            source_pitch=copy.source_pitch,
            address=address + copy.target,
            target_pitch=copy.target_pitch,
            rows=copy.rows,
            width=copy.width,
        )


def rows_of(upload: Upload) -> NDArray[np.uint8]:
    """The bytes that an upload copies [rows, width], a view."""
    start = upload.source
    span = upload.stored.view[
        start : start + (upload.rows - 1) * upload.source_pitch + upload.width
    ]
    return np.lib.stride_tricks.as_strided(
        span, (upload.rows, upload.width), (upload.source_pitch, 1), writeable=False
    )


class _Source(Frozen):
    """The checkpoint's tensors as this rank selects them."""

    tensors: Mapping[str, TensorInfo]
    ranks: Mapping[str, int]

    def name(self, source: TensorSource) -> str:
        if isinstance(source, RankedTensors):
            return source.tensors[self.ranks[source.group]]
        return source

    def range(self, ranges: Ranges | None, extent: int) -> tuple[int, int]:
        if isinstance(ranges, RankedRanges):
            return ranges.ranges[self.ranks[ranges.group]]
        return (0, extent) if ranges is None else ranges

    def matrix(self, source: TensorSource) -> _Matrix:
        name = self.name(source)
        info = self.tensors.get(name)
        if info is None:
            raise WeightError(f"tensor `{name}` is not in the checkpoint")
        format_ = FORMATS[info.format]
        rows = info.shape[0] if len(info.shape) > 1 else 1
        width = math.prod(info.shape[1:] if len(info.shape) > 1 else info.shape)
        cols = format_.row_bytes(width) if format_.quantized else width
        return _Matrix(name, format_.dtype, rows, cols)


def _plan_weight(name: str, buffer: Buffer, nbytes: int, source: _Source) -> WeightPlan:
    copies: list[Copy] = []
    end = 0
    for index, segment in enumerate(buffer.bind):
        where = f"{buffer.kind} `{name}` bind[{index}] (`{source.name(segment.tensor)}`)"
        try:
            for copy in _plan_segment(segment, buffer.dtype, end, source):
                copies.append(copy)
            end = _end(copies, end)
        except WeightError as error:
            raise WeightError(f"{where}: {error}") from error
    if end != nbytes:
        raise WeightError(
            f"{buffer.kind} `{name}`: its {len(buffer.bind)} bound segment(s) total {end} bytes, "
            f"the buffer is {nbytes}"
        )
    return WeightPlan(name, nbytes, tuple(copies))


def _end(copies: list[Copy], start: int) -> int:
    """Where the last segment, which began at `start`, ends."""
    return max(
        (c.target + (c.rows - 1) * c.target_pitch + c.width for c in copies if c.rows),
        default=start,
    )


def _plan_segment(segment: Segment, dtype: DType, target: int, source: _Source) -> Iterator[Copy]:
    matrix = source.matrix(segment.tensor)
    _require_dtype(matrix, dtype)
    if segment.interleave is not None:
        yield from _interleaved(matrix, segment.interleave, target, source)
        return
    first, last = source.range(segment.rows, matrix.rows)
    left, right = source.range(segment.cols, matrix.cols)
    _require_inside("rows", first, last, matrix.rows)
    _require_inside("cols", left, right, matrix.cols)
    item = DTYPE_BYTES[dtype]
    yield _joined(
        Copy(
            tensor=matrix.name,
            source=first * matrix.row_bytes + left * item,
            source_pitch=matrix.row_bytes,
            target=target,
            target_pitch=(right - left) * item,
            rows=last - first,
            width=(right - left) * item,
        )
    )


def _interleaved(
    matrix: _Matrix, interleave: Interleave, target: int, source: _Source
) -> Iterator[Copy]:
    """Blocks of rows from `matrix` and its partner in turn: each leaves gaps for the other."""
    partner = source.matrix(interleave.with_)
    _require_dtype(partner, matrix.dtype)
    if (partner.rows, partner.cols) != (matrix.rows, matrix.cols):
        raise WeightError(
            f"interleaves `{partner.name}` of shape [{partner.rows}, {partner.cols}] with shape "
            f"[{matrix.rows}, {matrix.cols}]"
        )
    if matrix.rows % interleave.rows:
        raise WeightError(f"{matrix.rows} rows are not blocks of {interleave.rows}")
    block = interleave.rows * matrix.row_bytes
    for place, name in enumerate((matrix.name, partner.name)):
        yield _joined(
            Copy(
                tensor=name,
                source=0,
                source_pitch=block,
                target=target + place * block,
                target_pitch=2 * block,
                rows=matrix.rows // interleave.rows,
                width=block,
            )
        )


def _joined(copy: Copy) -> Copy:
    """The copy as one row where neither side has gaps."""
    if copy.rows != 1 and copy.source_pitch == copy.width == copy.target_pitch:
        whole = copy.rows * copy.width
        return Copy(copy.tensor, copy.source, whole, copy.target, whole, 1, whole)
    return copy


def _require_dtype(matrix: _Matrix, dtype: DType) -> None:
    if matrix.dtype != dtype:
        raise WeightError(
            f"checkpoint tensor `{matrix.name}` is {matrix.dtype}, buffer declares {dtype}"
        )


def _require_inside(axis: str, start: int, stop: int, extent: int) -> None:
    if not 0 <= start <= stop <= extent:
        raise WeightError(f"{axis} [{start}, {stop}) outside the tensor's {extent}")
