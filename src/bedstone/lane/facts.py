"""What every pass may ask about the step being lowered: shapes, storage, numerics, knobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from bedstone.graph.infer import declared, infer
from bedstone.graph.refs import reads, table_write, writes
from bedstone.graph.step import Concat, Linear, Part, StepGraph, Value
from bedstone.lane.layout import Layout, View
from bedstone.lane.operand import Matrix, Rows, Stack, Upto
from bedstone.lane.schedule import MAX_CHUNK, Numerics
from bedstone.library.coding import INT8, Coding
from bedstone.spec.dtype import FORMATS, FormatName

TOKENS = "token"
"""The carried vector that a decode step reads its tokens from, one a sequence."""


@dataclass(frozen=True, slots=True)
class Knobs:
    """What a caller may tune; no knob changes a result.

    `fuse_quant` lets producers write their quantized form. An attention is cut into as many pieces
    as give `target_blocks` blocks of work, at most `max_splits` and each of `min_span` positions.
    Where a product has `wide_outputs` outputs, a warp computes four of them, if it has warps. With
    `in_place` a result may take the memory of an operand. A chunk has `max_chunk` rows at most.
    """

    fuse_quant: bool = True
    target_blocks: int = 1
    min_span: int = 256
    max_splits: int = 16
    wide_outputs: int = 4224
    in_place: bool = True
    max_chunk: int = MAX_CHUNK


@dataclass(frozen=True, slots=True)
class Facts:
    """A checked graph and how it is to be computed.

    `values` has the shape of every name; `storage` maps a table version to its table; `spread` are
    tensors made row by row of all of a cached table.
    """

    graph: StepGraph
    numerics: Numerics
    knobs: Knobs
    coding: Coding
    values: Mapping[str, Value]
    storage: Mapping[str, str]
    spread: frozenset[str]

    @classmethod
    def of(cls, graph: StepGraph, numerics: Numerics, knobs: Knobs, coding: Coding = INT8) -> Self:
        """The facts of a legal `graph`."""
        storage = {name: name for name in graph.tables}
        spread: set[str] = set()
        for op in graph.ops:
            written = table_write(op)
            if written is not None:
                storage[written[1]] = storage[written[0]]
            of_rows = isinstance(op, Part | Linear | Concat)
            if of_rows and any(n in spread or _cached(graph, storage, n) for n in reads(op)):
                spread.update(writes(op))
        values = declared(graph) | (dict(graph.values) or infer(graph))
        return cls(graph, numerics, knobs, coding, values, storage, frozenset(spread))

    def rows(self, name: str) -> int:
        """The rows of a tensor."""
        return self.values[name].rows

    def count(self, name: str) -> Rows:
        """The rows of a tensor that hold something: of what a cache is made into, not all."""
        rows = self.rows(name)
        return Upto(rows, self.position(0)) if name in self.spread else rows

    def width(self, name: str) -> int:
        """The values in a row of a tensor."""
        return self.values[name].width

    def position(self, sequence: int) -> str:
        """The param that counts the positions of a sequence of the step."""
        return f"pos.{sequence}" if self.graph.form == "batch" else "pos"

    def position_of(self, version: str) -> str:
        """The param that counts the positions of the sequence a table belongs to.

        A batch's tables end in the number of their sequence.
        """
        if self.graph.form != "batch":
            return self.position(0)
        return f"pos.{self.storage[version].rpartition('.')[2]}"

    def matrix(self, name: str) -> Matrix:
        """A constant matrix, as a launch names it."""
        const = self.graph.consts[name]
        n, k = const.shape
        return Matrix(name, const.format, n, k, self.rounds(const.format, n))

    def stack(self, name: str) -> Stack:
        """A constant stack of matrices, as a launch names it."""
        const = self.graph.consts[name]
        count, n, k = const.shape
        return Stack(name, const.format, count, n, k, self.rounds(const.format, n))

    def scratch(self, version: str) -> bool:
        """Whether a table version lives within the step."""
        return self.graph.tables[self.storage[version]].scratch

    def cached(self, name: str) -> bool:
        """Whether a name is a version of a table that outlives the step."""
        return _cached(self.graph, self.storage, name)

    def whole(self, name: str) -> View:
        """A tensor as it lies in its own memory."""
        return View(name, Layout.dense(self.rows(name), self.width(name)))

    @property
    def scratch_views(self) -> Mapping[str, View]:
        """Each version of a scratch table, as the table's memory."""
        made = {version: table for version, table in self.storage.items() if version != table}
        return {
            version: self.whole(table) for version, table in made.items() if self.scratch(version)
        }

    def rounds(self, fmt: FormatName, n: int) -> bool:
        """Whether a product by a matrix of `n` rows may round what it reads to the matrix's type.

        A gate, a matrix of one row, is multiplied as it is.
        """
        return self.numerics == "quantized" and fmt in self.coding.rounds and n > 1

    @property
    def rounds_attention(self) -> bool:
        """Whether an attention may round what it multiplies."""
        return self.numerics == "quantized" and bool(self.coding.rounds)

    def reads_quant(self, matrix: Matrix | Stack, x: str) -> bool:
        """Whether a product of `x` by `matrix` reads the coded form of `x`.

        It depends on the graph and the numerics alone, so holding a rule back moves no rounding.
        A gate, which is a matrix of one row held as it is, is read as it is.
        """
        if self.numerics != "quantized" or matrix.format not in self.coding.formats:
            return False
        gate = matrix.n == 1 and not FORMATS[matrix.format].quantized
        return not gate and self.coding.whole(matrix.k) and self.rows(x) > self.coding.above


def _cached(graph: StepGraph, storage: Mapping[str, str], name: str) -> bool:
    table = storage.get(name)
    return table is not None and not graph.tables[table].scratch
