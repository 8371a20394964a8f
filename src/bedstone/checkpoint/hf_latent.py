"""What a config says of multi-head latent attention (DeepSeek V2 and V3)."""

from bedstone.checkpoint.config import LatentConfig
from bedstone.checkpoint.fields import FieldRules, Fields

DERIVED = "follows from the widths of a head's parts, which serve"

RULES = FieldRules(
    frozenset(
        {
            "attention_bias", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim",
            "qk_rope_head_dim", "v_head_dim",
        }
    ),
    inert={"qk_head_dim": DERIVED},
)  # fmt: skip

NORM_EPS = 1e-6
"""The latents' norms do not read `rms_norm_eps`."""


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
