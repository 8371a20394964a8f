"""Concrete inputs of a Definition: sizes, and where each input's values come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bedstone.spec.fields import Extra


@dataclass(frozen=True, slots=True)
class Random:
    """Values made from a seed, within what the Definition's constraints allow."""

    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stored:
    """Values of tensor `tensor_key` in the safetensors file `path`, relative to the data set."""

    path: str
    tensor_key: str
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scalar:
    """One number."""

    value: bool | int | float
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Custom:
    """Values made by the Definition's own function."""

    extra: Extra = field(default_factory=dict)


Input = Random | Stored | Scalar | Custom


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far an output may be from the reference's.

    An element fits if it differs by at most `atol + rtol * |expected|`; `matched` is the share that
    must fit. Without `atol` it is `rtol` times the root mean square of the expected output; without
    `rtol` that is chosen by element type. The root mean square of the error over the spread of
    the expected values may not exceed `spread`: whatever the numbers above, a constant fails.
    Integers may differ by `steps`, which is for codes that a rounding decides.
    """

    rtol: float | None = None
    atol: float | None = None
    matched: float = 1.0
    spread: float = 0.1
    steps: int = 0
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Workload:
    """Sizes by axis and sources by input; an input without one is random, or absent if optional."""

    axes: Mapping[str, int]
    inputs: Mapping[str, Input]
    uuid: str
    tolerance: Tolerance | None = None
    extra: Extra = field(default_factory=dict)
