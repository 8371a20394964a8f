"""One `ModelConfig` for a model, whichever file format it came in."""

from dataclasses import dataclass
from typing import Literal

RopeScalingKind = Literal["default", "linear", "dynamic", "llama3", "yarn"]


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """How positions turn into angles.

    `rot` is the rotated width of a head, `kind` which values form a pair (`neox`: i and i + rot/2;
    `pair`: 2i and 2i + 1). `inv_freq` holds radians a position for each of the rot/2 pairs, all
    scaling applied; `attention_factor` multiplies cos and sin.
    """

    kind: Literal["neox", "pair"]
    rot: int
    theta: float
    scaling: RopeScalingKind
    inv_freq: tuple[float, ...]
    attention_factor: float = 1.0


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What a model family needs to write its step graph. Sizes are in elements."""

    architecture: str
    name: str
    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    context: int
    norm_eps: float
    rope: RopeConfig
    activation: Literal["silu", "gelu_tanh"]
    tie_embeddings: bool
    attention_bias: bool
    attention_out_bias: bool
    mlp_bias: bool
    qk_norm: bool
    attention_scale: float
    sliding_window: int | None
    bos: int | None
    eos: tuple[int, ...]
