"""What a Gemma 3 config says in words of its own: scores, rotations of two kinds of layer, caps."""

import math
from collections.abc import Mapping

from bedstone.checkpoint.config import RopeConfig
from bedstone.checkpoint.fields import FieldRules, Fields
from bedstone.checkpoint.hf_rope import parse_rope

RULES = FieldRules(
    frozenset(
        {
            "_sliding_window_pattern", "attention_bias", "final_logit_softcapping",
            "hidden_activation", "layer_types", "query_pre_attn_scalar", "rope_local_base_freq",
            "sliding_window", "sliding_window_pattern",
        }
    ),
    fixed={
        "attn_logit_softcapping": (None,),
        "hidden_act": (None, "gelu_pytorch_tanh"),
        "use_bidirectional_attention": (False, None),
    },
)  # fmt: skip

GLOBAL_THETA, LOCAL_THETA = 1e6, 1e4
SCORE_SCALAR = 256.0


def parse_score_scale(fields: Fields) -> float:
    """What multiplies attention scores: by a number of its own, not by the head's width."""
    return 1 / math.sqrt(fields.real("query_pre_attn_scalar", SCORE_SCALAR))


def parse_logit_cap(fields: Fields) -> float | None:
    """The bound of the logits, where there is one."""
    return fields.real("final_logit_softcapping") if fields.has("final_logit_softcapping") else None


def parse_ropes(fields: Fields, head_dim: int) -> tuple[RopeConfig, RopeConfig]:
    """The rotation of full layers and that of sliding ones.

    New configs hold a table for each kind of layer, old ones a base for each; scaling is that of
    full layers.
    """
    tables = fields.table("rope_parameters")
    kinds = ("full_attention", "sliding_attention")
    if tables is not None and any(map(tables.has, kinds)):
        full, sliding = ({"rope_parameters": tables.values.get(kind)} for kind in kinds)
        return _rope(fields, full, GLOBAL_THETA, head_dim), _rope(
            fields, sliding, LOCAL_THETA, head_dim
        )
    theta = fields.real("rope_local_base_freq", LOCAL_THETA)
    return _rope(fields, fields.values, GLOBAL_THETA, head_dim), _rope(fields, {}, theta, head_dim)


def _rope(fields: Fields, values: Mapping[str, object], theta: float, head_dim: int) -> RopeConfig:
    context = {"max_position_embeddings": fields.values.get("max_position_embeddings")}
    return parse_rope(Fields({"rope_theta": theta, **context, **values}, fields.where), head_dim)
