"""What a hybrid's config says of its layers: which recur, and how a gated delta net is sized."""

from collections.abc import Mapping
from typing import Literal

from bedstone.checkpoint.config import LAYER_LIMIT, LayerKind, RecurrentConfig
from bedstone.checkpoint.fields import FieldRules, Fields

PREDICTION = "belongs to extra layers that guess further tokens, which no step of the model reads"

RULES = FieldRules(
    frozenset(
        {
            "attention_bias", "full_attention_interval", "layer_types", "linear_conv_kernel_dim",
            "linear_key_head_dim", "linear_num_key_heads", "linear_num_value_heads",
            "linear_value_head_dim",
        }
    ),
    inert={
        **dict.fromkeys(("mtp_num_hidden_layers", "mtp_use_dedicated_embeddings"), PREDICTION),
        "mamba_ssm_dtype": "the state is kept in the dtype of the step, float32 or wider",
    },
    fixed={"attn_output_gate": (True,), "use_sliding_window": (False,)},
)  # fmt: skip

KINDS: Mapping[str, LayerKind] = {"linear_attention": "recurrent", "full_attention": "full"}
AXES = dict.fromkeys(
    ("mrope_interleaved", "mrope_section"),
    "deals frequencies out to axes on which a text stands at one position",
)
"""Fields of the rotation."""

SHARE = 0.25
"""The share of a head that turns where the config does not say."""

INTERVAL = 4
"""Every so many layers one attends, where the config does not say."""


def parse_recurrent(
    fields: Fields, projections: Literal["none", "packed", "split"]
) -> RecurrentConfig | None:
    """The sizes of the recurrent layers; absent ones are those of `transformers`."""
    if projections == "none":
        return None
    return RecurrentConfig(
        key_heads=fields.size("linear_num_key_heads", 16),
        value_heads=fields.size("linear_num_value_heads", 32),
        key_dim=fields.size("linear_key_head_dim", 128),
        value_dim=fields.size("linear_value_head_dim", 128),
        kernel=fields.size("linear_conv_kernel_dim", 4),
        packed=projections == "packed",
    )


def parse_layer_kinds(fields: Fields) -> tuple[LayerKind, ...]:
    """The kind of each layer, from `layer_types` or the interval at which layers attend.

    Raises `WeightError` where a kind is not known.
    """
    named = fields.listed("layer_types", KINDS)
    if named is None:
        interval = fields.size("full_attention_interval", INTERVAL)
        layers = min(fields.size("num_hidden_layers"), LAYER_LIMIT + 1)
        return tuple("recurrent" if (i + 1) % interval else "full" for i in range(layers))
    return named
