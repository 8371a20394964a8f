"""Rotation frequencies: one per pair of the rotated width, every scaling kind as a pure formula.

Frequencies are radians a position, computed in float64. The kinds and their formulas are those of
Hugging Face `transformers` (`rope_type`), which checkpoints are written for.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from bedstone.checkpoint.config import RopeConfig, RopeScalingKind
from bedstone.errors import WeightError
from bedstone.spec.frozen import Frozen

Frequencies = tuple[float, ...]


class Unscaled(Frozen):
    """Frequencies as the base gives them."""


class Linear(Frozen):
    """Positions divided by `factor`."""

    factor: float


class Dynamic(Frozen):
    """A base that grows with the sequence beyond `original` tokens; within them, unscaled."""

    factor: float
    original: int


class Llama3(Frozen):
    """Long waves divided by `factor`, short ones kept, those between blended.

    A wave is short below `original / high` positions and long above `original / low`.
    """

    factor: float
    low: float
    high: float
    original: int


class Yarn(Frozen):
    """Interpolation by wave length, with a factor on cos and sin.

    Pairs that turn more than `beta_fast` times in `original` positions are kept, those that turn
    less than `beta_slow` times are divided by `factor`. Source: arXiv:2309.00071.
    """

    factor: float
    original: int
    attention_factor: float
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True


Scaling = Unscaled | Linear | Dynamic | Llama3 | Yarn

KINDS: dict[type[Scaling], RopeScalingKind] = {
    Unscaled: "default",
    Linear: "linear",
    Dynamic: "dynamic",
    Llama3: "llama3",
    Yarn: "yarn",
}


ROT_LIMIT = 1 << 16
"""No head is wider; bounds the work a hostile config can ask for."""


def inverse_frequencies(theta: float, rot: int) -> Frequencies:
    """`theta ** (-2i / rot)` for each of the rot/2 pairs: over the rotated width, not the head."""
    return tuple(theta ** (-2 * i / rot) for i in range(rot // 2))


def llama3_frequencies(plain: Frequencies, scaling: Llama3) -> Frequencies:
    """Keep, blend or divide each frequency by its wave length."""

    def scaled(frequency: float) -> float:
        waves = scaling.original * frequency / (2 * math.pi)
        if waves > scaling.high:
            return frequency
        if waves < scaling.low:
            return frequency / scaling.factor
        share = (waves - scaling.low) / (scaling.high - scaling.low)
        return (1 - share) * frequency / scaling.factor + share * frequency

    return tuple(scaled(frequency) for frequency in plain)


def yarn_magnitude(factor: float, weight: float) -> float:
    """How much longer a query or key is made for a context stretched by `factor`."""
    return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0


def yarn_attention_factor(
    factor: float, mscale: float | None = None, mscale_all_dim: float | None = None
) -> float:
    """The factor on cos and sin where the config gives none outright."""
    if mscale and mscale_all_dim:
        return yarn_magnitude(factor, mscale) / yarn_magnitude(factor, mscale_all_dim)
    return yarn_magnitude(factor, 1.0)


def yarn_frequencies(plain: Frequencies, theta: float, scaling: Yarn) -> Frequencies:
    """Blend kept and divided frequencies along a ramp over the pairs."""
    rot = 2 * len(plain)

    def pair_that_turns(times: float) -> float:
        return rot * math.log(scaling.original / (times * 2 * math.pi)) / (2 * math.log(theta))

    low, high = pair_that_turns(scaling.beta_fast), pair_that_turns(scaling.beta_slow)
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rot - 1)
    span = high - low or 0.001

    def scaled(pair: int, frequency: float) -> float:
        divided = min(max((pair - low) / span, 0.0), 1.0)
        return frequency / scaling.factor * divided + frequency * (1 - divided)

    return tuple(scaled(pair, frequency) for pair, frequency in enumerate(plain))


def scaled_frequencies(theta: float, rot: int, scaling: Scaling) -> Frequencies:
    """Frequencies with the scaling applied; `Dynamic` ones hold up to its original length."""
    plain = inverse_frequencies(theta, rot)
    match scaling:
        case Linear(factor):
            return tuple(frequency / factor for frequency in plain)
        case Llama3():
            return llama3_frequencies(plain, scaling)
        case Yarn():
            return yarn_frequencies(plain, theta, scaling)
        case Unscaled() | Dynamic():
            return plain


def rope_config(
    kind: Literal["neox", "pair"], rot: int, theta: float, scaling: Scaling
) -> RopeConfig:
    """The rotation of `rot` values of each head with base `theta`.

    Raises `WeightError` where the numbers give no usable frequencies.
    """
    if rot % 2 or not 0 < rot <= ROT_LIMIT:
        raise WeightError(f"rotary width is {rot}, expected an even number up to {ROT_LIMIT}")
    if theta <= 1:
        raise WeightError(f"rotary base is {theta}, expected a number above 1")
    if isinstance(scaling, Llama3) and scaling.high <= scaling.low:
        raise WeightError(
            f"llama3 rope scaling has high_freq_factor {scaling.high}, expected more than "
            f"low_freq_factor, {scaling.low}"
        )
    frequencies = scaled_frequencies(theta, rot, scaling)
    if not all(0 < frequency < math.inf for frequency in frequencies):
        raise WeightError(f"rope scaling {scaling} gives frequencies beyond float64")
    return RopeConfig(
        kind=kind,
        rot=rot,
        theta=theta,
        scaling=KINDS[type(scaling)],
        inv_freq=frequencies,
        attention_factor=scaling.attention_factor if isinstance(scaling, Yarn) else 1.0,
    )


def divided(rope: RopeConfig, factors: Sequence[float]) -> RopeConfig:
    """`rope` with each frequency divided by its factor [rot/2], as a GGUF file stores scaling.

    Raises `WeightError` where there is not one positive finite factor a frequency.
    """
    if len(factors) != len(rope.inv_freq):
        raise WeightError(
            f"{len(factors)} rope factors for {len(rope.inv_freq)} frequencies: expected one each"
        )
    if not all(0 < factor < math.inf for factor in factors):
        raise WeightError("a rope factor is not a finite number above zero")
    frequencies = (f / factor for f, factor in zip(rope.inv_freq, factors, strict=True))
    return replace(rope, scaling="llama3", inv_freq=tuple(frequencies))
