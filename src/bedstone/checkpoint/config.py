"""One `ModelConfig` for a model, whichever file format it came in."""

from typing import Literal

from bedstone.errors import WeightError
from bedstone.spec.frozen import Frozen

RopeScalingKind = Literal["default", "linear", "dynamic", "llama3", "yarn"]


class RopeConfig(Frozen):
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


LayerKind = Literal["full", "sliding", "recurrent"]
"""Attention to all cached rows or to a window of them, or a recurrence with a state of its own."""


class RecurrentConfig(Frozen):
    """The gated delta net of a hybrid's recurrent layers.

    Each key head serves `value_heads / key_heads` consecutive value heads. `kernel` is the width of
    the causal convolution in rows. `packed` says how the checkpoint holds the projections: as two
    matrices, `[q | k | v | z]` and `[b | a]` for each key head, or as four.
    """

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int
    packed: bool

    @property
    def key_width(self) -> int:
        """The values of all key heads; the queries are as wide."""
        return self.key_heads * self.key_dim

    @property
    def value_width(self) -> int:
        """The values of all value heads."""
        return self.value_heads * self.value_dim


class LatentConfig(Frozen):
    """Multi-head latent attention: keys and values as one latent of `kv_rank` values a position.

    A query or key head holds `own` values made from the latent, then `turned` rotated ones, which
    all key heads share. Queries come through a latent of `query_rank` where there is one.
    `norm_eps` is that of the latents' norms.
    """

    query_rank: int | None
    kv_rank: int
    own: int
    turned: int
    value_dim: int
    norm_eps: float


ScoreKind = Literal["softmax", "sigmoid"]
ExpertLayout = Literal["apart", "merged", "stacked"]
"""A tensor for each expert's matrix; all gate and up matrices in one tensor; or a stack of each."""


class MixtureConfig(Frozen):
    """The mixture of experts that stands for the feed-forward block in some `layers`.

    Of `experts` networks, each `intermediate` wide, a row takes the `chosen` with the best scores.
    Their scores weigh them: made to sum to one where `normalise`, times `factor`. With `bias` a
    vector is added to the scores for the choice alone. Only experts of the `group_k` best of
    `groups` are chosen, a group being worth its `group_best` best ones. `shared` is the width of a
    network that every row takes, 0 for none; `shared_gate` says that a gate of its own weighs it.
    """

    experts: int
    chosen: int
    intermediate: int
    layers: tuple[int, ...]
    score: ScoreKind
    normalise: bool
    factor: float = 1.0
    bias: bool = False
    groups: int = 1
    group_k: int = 1
    group_best: int = 1
    shared: int = 0
    shared_gate: bool = False
    layout: ExpertLayout = "apart"


class ModelConfig(Frozen):
    """What a model family needs to write its step graph. Sizes are in elements.

    `architecture` is the Hugging Face class name (`LlamaForCausalLM`) whatever the file format.
    `tie_embeddings` says that the checkpoint has no output matrix of its own. `layer_kinds` holds
    the kind of each layer where they differ; `sliding_window` and `local_rope`, where given, are
    those of sliding layers. `norm_plus_one` says that norms hold their weight less one,
    `sandwich_norms` that what a block makes is normed too, `attention_gate` that each query head
    comes with a gate on what it attends to. `logit_cap` bounds the logits by a tanh.
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
    layer_kinds: tuple[LayerKind, ...] = ()
    norm_plus_one: bool = False
    attention_gate: bool = False
    recurrent: RecurrentConfig | None = None
    latent: LatentConfig | None = None
    mixture: MixtureConfig | None = None
    local_rope: RopeConfig | None = None
    sandwich_norms: bool = False
    logit_cap: float | None = None

    def kind(self, layer: int) -> LayerKind:
        """What a layer does with the rows before it."""
        if self.layer_kinds:
            return self.layer_kinds[layer]
        return "full" if self.sliding_window is None else "sliding"

    def window(self, layer: int) -> int | None:
        """How many rows a layer sees, the row itself counted; None for all."""
        return self.sliding_window if self.kind(layer) == "sliding" else None

    def layer_rope(self, layer: int) -> RopeConfig:
        """How positions turn the heads of a layer."""
        local = self.local_rope if self.kind(layer) == "sliding" else None
        return local or self.rope


LAYER_LIMIT = 4096
HEAD_LIMIT = 1 << 16
EXPERT_LIMIT = 1 << 17
KERNEL_LIMIT = 1 << 10
"""No model is deeper, has wider heads, more experts over all its layers or a longer convolution.

They bound the work a hostile config can ask for.
"""


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
    rules |= _layer_rules(config) | _latent_rules(config) | _mixture_rules(config)
    return [fault for fault, holds in rules.items() if not holds]


def _layer_rules(config: ModelConfig) -> dict[str, bool]:
    kinds, recurrent = config.layer_kinds, config.recurrent
    rules = {
        f"{len(kinds)} layer kinds for {config.layers} layers: expected one each": (
            len(kinds) in (0, config.layers)
        ),
    }
    if recurrent is not None:
        heads = f"{recurrent.value_heads} value heads over {recurrent.key_heads} key heads"
        taps = f"convolution of {recurrent.kernel} rows: expected 2 to {KERNEL_LIMIT}"
        rules[f"{heads}: expected a multiple"] = recurrent.value_heads % recurrent.key_heads == 0
        rules[taps] = 2 <= recurrent.kernel <= KERNEL_LIMIT
    return rules


def _latent_rules(config: ModelConfig) -> dict[str, bool]:
    latent = config.latent
    if latent is None:
        return {}
    return {
        f"{config.kv_heads} key-value heads of one latent: expected {config.heads}": (
            config.kv_heads == config.heads
        ),
        f"rotary width {config.rope.rot}: expected the rotated part's, {latent.turned}": (
            config.rope.rot == latent.turned
        ),
    }


def _mixture_rules(config: ModelConfig) -> dict[str, bool]:
    mixture = config.mixture
    if mixture is None:
        return {}
    experts, groups, each = mixture.experts, mixture.groups, mixture.experts // mixture.groups
    total = experts * len(mixture.layers)
    return {
        f"{experts} experts in {groups} groups: expected a multiple": experts % groups == 0,
        f"{mixture.group_k} groups kept: expected {groups} at most": mixture.group_k <= groups,
        f"{mixture.group_best} experts judge a group of {each}": mixture.group_best <= each,
        f"{mixture.chosen} experts chosen: expected {mixture.group_k * each} at most": (
            mixture.chosen <= mixture.group_k * each
        ),
        f"{total} experts in all layers: expected {EXPERT_LIMIT} at most": total <= EXPERT_LIMIT,
    }


def require_config(config: ModelConfig, where: str) -> None:
    """Refuse a config whose sizes do not fit each other.

    Raises `WeightError` that names every misfit.
    """
    faults = check_config(config)
    if faults:
        raise WeightError(f"`{where}` is not a usable config: " + "; ".join(faults))
