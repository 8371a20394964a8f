"""Launches that carry a state from row to row of a sequence."""

from dataclasses import dataclass

from bedstone.graph.step import ActFn
from bedstone.lane.operand import Carry, Dst, Read, ToBuf


@dataclass(frozen=True, slots=True)
class Decay:
    """The log of a decay of each head."""

    a: Read
    a_log: str
    dt: str
    rows: int
    heads: int
    dst: ToBuf


@dataclass(frozen=True, slots=True)
class ConvPart:
    """One causal convolution: its input, taps and ring, and the `unit` brought to unit length."""

    x: Read
    w: str
    ring: Carry
    channels: int
    dst: Dst
    unit: int | None = None
    eps: float = 0.0


@dataclass(frozen=True, slots=True)
class Conv:
    """One causal convolution, or several of one sequence, each through `act`."""

    parts: tuple[ConvPart, ...]
    rows: int
    taps: int
    act: ActFn | None
    pos: str


@dataclass(frozen=True, slots=True)
class DecayGates:
    """What makes a delta rule's gates: the decay of `a` and the sigmoid of `b`."""

    a: Read
    b: Read
    a_log: str
    dt: str


@dataclass(frozen=True, slots=True)
class Delta:
    """The gated delta rule over the rows of one sequence."""

    q: Read
    k: Read
    v: Read
    gates: tuple[Read, Read] | DecayGates
    state: Carry
    rows: int
    key_heads: int
    heads: int
    dk: int
    dv: int
    scale: float
    pos: str
    dst: Dst
