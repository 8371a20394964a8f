"""Launches of a mixture of experts."""

from dataclasses import dataclass

from bedstone.graph.step import ScoreFn
from bedstone.lane.launch_dense import GateFn
from bedstone.lane.operand import Dst, Matrix, Read, Stack, ToBuf


@dataclass(frozen=True, slots=True)
class Score:
    """Router logits [rows, experts] as scores."""

    x: Read
    fn: ScoreFn
    rows: int
    experts: int
    dst: ToBuf


@dataclass(frozen=True, slots=True)
class Routing:
    """How experts are chosen by their scores: see `bedstone.graph.mixture.TopK`."""

    experts: int
    chosen: int
    groups: int
    group_k: int
    group_best: int
    bias: str | None


@dataclass(frozen=True, slots=True)
class TopK:
    """The ids of the experts that each row takes."""

    x: Read
    routing: Routing
    rows: int
    dst: ToBuf


@dataclass(frozen=True, slots=True)
class Renorm:
    """The weights of the chosen experts."""

    x: Read
    ids: Read
    rows: int
    experts: int
    chosen: int
    normalise: bool
    factor: float
    dst: ToBuf


@dataclass(frozen=True, slots=True)
class Route:
    """A row's router product, its scores, the choice and the weights, in one."""

    x: Read
    m: Matrix
    fn: ScoreFn
    routing: Routing
    normalise: bool
    factor: float
    rows: int
    ids: ToBuf
    dst: ToBuf


@dataclass(frozen=True, slots=True)
class ExpertProduct:
    """`x` by the matrices of the chosen experts; `x` has one unit a row, or one for each."""

    x: Read
    ids: Read
    m: Stack
    rows: int
    chosen: int
    units: int
    dst: Dst


@dataclass(frozen=True, slots=True)
class SharedIn:
    """The network every row takes, beside the experts: `act(x gate) * (x up)`, into `dst`.

    With a gate of its own, `share` is the sigmoid of `x` by the vector `w`.
    """

    gate: Matrix
    up: Matrix
    dst: Dst
    x: Read | None = None
    w: str | None = None
    share: ToBuf | None = None


@dataclass(frozen=True, slots=True)
class ExpertGlu:
    """`act(x gate) * (x up)` with the matrices of the chosen experts."""

    x: Read
    ids: Read
    gate: Stack
    up: Stack
    act: GateFn
    rows: int
    chosen: int
    dst: Dst
    shared: SharedIn | None = None


@dataclass(frozen=True, slots=True)
class SharedOut:
    """The shared network's product, times its `share` where there is one, added at the end."""

    x: Read
    m: Matrix
    share: Read | None


@dataclass(frozen=True, slots=True)
class ExpertSum:
    """The products of each unit by its expert's matrix, weighted, summed in order."""

    x: Read
    ids: Read
    weights: Read
    m: Stack
    rows: int
    chosen: int
    dst: Dst
    shared: SharedOut | None = None


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """The units of each row of `x` [rows, chosen * width], weighted, summed in order."""

    x: Read
    weights: Read
    rows: int
    chosen: int
    width: int
    dst: ToBuf
