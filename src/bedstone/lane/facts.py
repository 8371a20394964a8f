"""What every pass may ask about the step being lowered: shapes, storage, numerics, knobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from bedstone.graph.infer import declared, infer
from bedstone.graph.step import Const, Set, StepGraph, Value
from bedstone.lane.launch import Matrix
from bedstone.lane.schedule import QBLOCK, Numerics
from bedstone.spec.dtype import FORMATS

TOKENS = "token"
"""The carried vector that a decode step reads its tokens from, one a sequence."""


@dataclass(frozen=True, slots=True)
class Knobs:
    """What a caller may tune; no knob changes a result.

    `fuse_quant` lets producers write their quantized form. An attention is cut into as many pieces
    as give `target_blocks` blocks of work, at most `max_splits` and each of `min_span` positions.
    """

    fuse_quant: bool = True
    target_blocks: int = 1
    min_span: int = 256
    max_splits: int = 16


@dataclass(frozen=True, slots=True)
class Facts:
    """A checked graph and how it is to be computed.

    `values` has the shape of every name; `storage` maps a table version to its table.
    """

    graph: StepGraph
    numerics: Numerics
    knobs: Knobs
    values: Mapping[str, Value]
    storage: Mapping[str, str]

    @classmethod
    def of(cls, graph: StepGraph, numerics: Numerics, knobs: Knobs) -> Self:
        """The facts of a legal `graph`."""
        storage = {name: name for name in graph.tables}
        for op in graph.ops:
            if isinstance(op, Set):
                storage[op.out] = storage[op.table]
        values = declared(graph) | (dict(graph.values) or infer(graph))
        return cls(graph, numerics, knobs, values, storage)

    def rows(self, name: str) -> int:
        """The rows of a tensor."""
        return self.values[name].rows

    def width(self, name: str) -> int:
        """The values in a row of a tensor."""
        return self.values[name].width

    def position(self, sequence: int) -> str:
        """The param that counts the positions of a sequence of the step."""
        return f"pos.{sequence}" if self.graph.form == "batch" else "pos"

    def matrix(self, name: str) -> Matrix:
        """A constant matrix, as a launch names it."""
        const: Const = self.graph.consts[name]
        n, k = const.shape
        return Matrix(name, const.format, n, k)

    def scratch(self, version: str) -> bool:
        """Whether a table version lives within the step."""
        return self.graph.tables[self.storage[version]].scratch

    def reads_quant(self, matrix: Matrix) -> bool:
        """Whether a product by `matrix` reads the quantized form of its input.

        It depends on the numerics and the matrix alone, so holding a rule back moves no rounding.
        """
        quantized = self.numerics == "quantized" and FORMATS[matrix.format].quantized
        return quantized and matrix.k % QBLOCK == 0
