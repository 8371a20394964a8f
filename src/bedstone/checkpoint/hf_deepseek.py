"""What a DeepSeek config says of its latent attention and of its mixtures of experts (V2, V3)."""

from dataclasses import dataclass

from bedstone.checkpoint.config import LAYER_LIMIT, LatentConfig, MixtureConfig, ScoreKind
from bedstone.checkpoint.fields import FieldRules, Fields
from bedstone.checkpoint.hf_hybrid import PREDICTION
from bedstone.errors import WeightError

DERIVED = "follows from the widths of a head's parts, which serve"
TRAINING = "balances or places the experts while the model is trained"

SHARED = FieldRules(
    frozenset(
        {
            "attention_bias", "first_k_dense_replace", "kv_lora_rank", "moe_intermediate_size",
            "n_group", "n_routed_experts", "n_shared_experts", "num_experts_per_tok",
            "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "routed_scaling_factor",
            "topk_group", "v_head_dim",
        }
    ),
    inert={
        "qk_head_dim": DERIVED,
        **dict.fromkeys(("aux_loss_alpha", "ep_size", "router_aux_loss_coef", "seq_aux"), TRAINING),
        "num_nextn_predict_layers": PREDICTION,
        "output_router_logits": "selects outputs of the Python class",
    },
    fixed={"moe_layer_freq": (1,)},
)  # fmt: skip

V2_RULES = SHARED | FieldRules(
    frozenset({"topk_method"}),
    fixed={
        "mlp_bias": (False,),
        "norm_topk_prob": (False, None),
        "rope_interleave": (True,),
        "scoring_func": ("softmax",),
    },
)
"""Weights made to sum to one are refused: `transformers` and the model's own code differ there."""

V3_RULES = SHARED | FieldRules(
    frozenset({"norm_topk_prob", "rope_interleave"}),
    fixed={"scoring_func": ("sigmoid",), "topk_method": ("noaux_tc",)},
)

NORM_EPS = 1e-6
"""The latents' norms do not read `rms_norm_eps`."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """What `transformers` takes for fields a config lacks, and how the version scores experts."""

    score: ScoreKind
    dense: int
    experts: int
    intermediate: int
    shared: int
    chosen: int | None
    groups: tuple[int, int] | None
    factor: float


VERSIONS = {
    "deepseek_v2": Defaults("softmax", 0, 64, 1407, 2, None, None, 1.0),
    "deepseek_v3": Defaults("sigmoid", 3, 256, 2048, 1, 8, (8, 4), 2.5),
}
"""By model type."""


def parse_latent(fields: Fields) -> LatentConfig:
    """The sizes of the latents and of a head's parts.

    `q_lora_rank` is null where queries have no latent; absent, it is that of `transformers`.
    """
    has_rank = fields.values.get("q_lora_rank", 0) is not None
    return LatentConfig(
        query_rank=fields.size("q_lora_rank", 1536) if has_rank else None,
        kv_rank=fields.size("kv_lora_rank", 512),
        own=fields.size("qk_nope_head_dim", 128),
        turned=fields.size("qk_rope_head_dim", 64),
        value_dim=fields.size("v_head_dim", 128),
        norm_eps=NORM_EPS,
    )


def parse_mixture(fields: Fields, defaults: Defaults) -> MixtureConfig:
    """The experts of the layers above the first dense ones, and how a row comes by its own."""
    layers = min(fields.size("num_hidden_layers"), LAYER_LIMIT + 1)
    wide = fields.size("moe_intermediate_size", defaults.intermediate)
    sigmoid = defaults.score == "sigmoid"
    groups, kept = _groups(fields, defaults)
    return MixtureConfig(
        experts=fields.size("n_routed_experts", defaults.experts),
        chosen=fields.size("num_experts_per_tok", defaults.chosen),
        intermediate=wide,
        layers=tuple(range(fields.count("first_k_dense_replace", defaults.dense), layers)),
        score=defaults.score,
        normalise=sigmoid and fields.flag("norm_topk_prob", default=True),
        factor=fields.real("routed_scaling_factor", defaults.factor),
        bias=sigmoid,
        groups=groups,
        group_k=kept,
        group_best=2 if sigmoid else 1,
        shared=wide * fields.size("n_shared_experts", defaults.shared),
    )


def _groups(fields: Fields, defaults: Defaults) -> tuple[int, int]:
    """How many groups there are, and of how many a row takes experts."""
    if defaults.groups is not None:
        groups, kept = defaults.groups
        return fields.size("n_group", groups), fields.size("topk_group", kept)
    method = fields.text("topk_method", "greedy")
    if method == "greedy":
        return 1, 1
    if method != "group_limited_greedy":
        raise WeightError(
            f"field `topk_method` of `{fields.where}` is `{method}`: expected `greedy` or "
            "`group_limited_greedy`"
        )
    return fields.size("n_group"), fields.size("topk_group")
