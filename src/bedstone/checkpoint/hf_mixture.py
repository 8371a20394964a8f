"""What a config says of a mixture of experts (Qwen)."""

from dataclasses import dataclass

from bedstone.checkpoint.config import LAYER_LIMIT, MixtureConfig
from bedstone.checkpoint.fields import FieldRules, Fields
from bedstone.errors import WeightError

RULES = FieldRules(
    frozenset(
        {
            "decoder_sparse_step", "mlp_only_layers", "moe_intermediate_size", "norm_topk_prob",
            "num_experts", "num_experts_per_tok", "num_local_experts",
        }
    ),
    inert=dict.fromkeys(
        ("output_router_logits", "router_aux_loss_coef", "router_jitter_noise"),
        "belongs to training: the router's choice does not read it",
    ),
)  # fmt: skip

SHARED = "shared_expert_intermediate_size"


@dataclass(frozen=True, slots=True)
class MixtureDefaults:
    """What `transformers` takes for an absent field; `shared` None where a family shares none."""

    experts: int
    chosen: int
    intermediate: int
    normalise: bool
    shared: int | None


DEFAULTS = {
    "qwen2": MixtureDefaults(60, 4, 1408, normalise=False, shared=5632),
    "qwen3": MixtureDefaults(128, 8, 768, normalise=False, shared=None),
    "qwen3_next": MixtureDefaults(512, 10, 512, normalise=True, shared=512),
    "qwen3_5": MixtureDefaults(256, 8, 512, normalise=True, shared=512),
}


def parse_mixture(fields: Fields, defaults: MixtureDefaults) -> MixtureConfig:
    """The experts of the layers that have them.

    Raises `WeightError` where a field is out of range.
    """
    shared = None if defaults.shared is None else fields.size(SHARED, defaults.shared)
    return MixtureConfig(
        experts=_experts(fields, defaults.experts),
        chosen=fields.size("num_experts_per_tok", defaults.chosen),
        intermediate=fields.size("moe_intermediate_size", defaults.intermediate),
        layers=_layers(fields),
        score="softmax",
        normalise=fields.flag("norm_topk_prob", default=defaults.normalise),
        shared=shared or 0,
        shared_gate=shared is not None,
    )


def _experts(fields: Fields, default: int) -> int:
    """The one number under two names."""
    names = [name for name in ("num_experts", "num_local_experts") if fields.has(name)]
    found = {name: fields.size(name) for name in names} or {"num_experts": default}
    if len(set(found.values())) > 1:
        raise WeightError(
            f"`{fields.where}` has {found['num_experts']} `num_experts` and "
            f"{found['num_local_experts']} `num_local_experts`: expected one number"
        )
    return found[min(found)]


def _layers(fields: Fields) -> tuple[int, ...]:
    """Every so many layers, less those that are named."""
    dense = fields.values.get("mlp_only_layers") or []
    if not isinstance(dense, list) or not all(type(layer) is int for layer in dense):
        raise WeightError(
            f"field `mlp_only_layers` of `{fields.where}` is {dense!r}, expected a list of layers"
        )
    step = fields.size("decoder_sparse_step", 1)
    layers = min(fields.size("num_hidden_layers"), LAYER_LIMIT + 1)
    return tuple(sorted(set(range(step - 1, layers, step)) - set(dense)))
