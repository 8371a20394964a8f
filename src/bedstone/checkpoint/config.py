"""One `ModelConfig` for a model, whichever file format it came in."""

from dataclasses import dataclass
from typing import Literal

from bedstone.errors import WeightError

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
    """What a model family needs to write its step graph. Sizes are in elements.

    `architecture` is the Hugging Face class name (`LlamaForCausalLM`) whatever the file format.
    `tie_embeddings` says that the checkpoint has no output matrix of its own.
    """

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


LAYER_LIMIT = 4096
HEAD_LIMIT = 1 << 16
"""No model is deeper or has wider heads; they bound the work a hostile config can ask for."""


def check_config(config: ModelConfig) -> list[str]:
    """Say which sizes do not fit each other."""
    groups = f"{config.heads} query heads over {config.kv_heads} key-value heads"
    rules = {
        f"{groups}: expected a multiple": config.heads % config.kv_heads == 0,
        f"{config.layers} layers: expected {LAYER_LIMIT} at most": config.layers <= LAYER_LIMIT,
        f"head width {config.head_dim}: expected {HEAD_LIMIT} at most": config.head_dim
        <= HEAD_LIMIT,
        f"rotary width {config.rope.rot}: expected at most the head's, {config.head_dim}": (
            config.rope.rot <= config.head_dim
        ),
    }
    return [fault for fault, holds in rules.items() if not holds]


def require_config(config: ModelConfig, where: str) -> None:
    """Refuse a config whose sizes do not fit each other.

    Raises `WeightError` that names every misfit.
    """
    faults = check_config(config)
    if faults:
        raise WeightError(f"`{where}` is not a usable config: " + "; ".join(faults))
