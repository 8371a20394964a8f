"""Checkpoints that hold a text model among others: its config is a table, its names have a prefix.

Only the text model is read; what belongs to images stays among the unused tensors.
"""

from collections.abc import Callable, Collection, Mapping

from bedstone.checkpoint.fields import FieldRules, Fields, require_fields
from bedstone.checkpoint.hf_families import COMMON
from bedstone.checkpoint.names import HEAD
from bedstone.errors import WeightError

WRAPPERS: Mapping[str, str] = {
    "Gemma3ForConditionalGeneration": "Gemma3ForCausalLM",
    "Qwen3_5ForConditionalGeneration": "Qwen3_5ForCausalLM",
    "Qwen3_5MoeForConditionalGeneration": "Qwen3_5MoeForCausalLM",
}
"""The architecture of the text model each holds."""

IMAGES = "belongs to images, which are not read"

RULES = COMMON | FieldRules(
    frozenset({"text_config"}),
    inert=dict.fromkeys(
        (
            "boi_token_index", "eoi_token_index", "image_token_id", "image_token_index",
            "mm_tokens_per_image", "video_token_id", "vision_config", "vision_end_token_id",
            "vision_start_token_id",
        ),
        IMAGES,
    ),
)  # fmt: skip

OUTSIDE = ("bos_token_id", "eos_token_id", "quantization_config")
"""Fields that hold for the text model where its table does not say otherwise."""

STEMS = ("model.language_model.", "language_model.model.")
HEADS = ("language_model.lm_head.weight",)
"""What the text model's tensors are called in place of `model.` and of the output matrix."""


def text_fields(values: Mapping[str, object], where: str) -> Mapping[str, object]:
    """The fields of the text model: those of its table where the config wraps one.

    Embeddings are tied if either says so.

    Raises `WeightError` where a field outside is not known, or the table is missing.
    """
    named = values.get("architectures")
    architecture = named[0] if isinstance(named, list) and len(named) == 1 else None
    inner = WRAPPERS.get(architecture) if isinstance(architecture, str) else None
    if inner is None:
        return values
    require_fields(values, RULES, where)
    table = Fields(values, where).table("text_config")
    if table is None:
        raise WeightError(
            f"`{where}` lacks the field `text_config`, the model inside {architecture}"
        )
    outside = {name: values[name] for name in OUTSIDE if name in values}
    tied = any(f.flag("tie_word_embeddings", default=False) for f in (Fields(values, where), table))
    own = {"architectures": [inner], "tie_word_embeddings": tied}
    return {**outside, **table.values, **own}


def own_names(names: Collection[str]) -> Callable[[str], str]:
    """How canonical names turn into those of a checkpoint that holds tensors of these names."""
    stem = next((s for s in STEMS if any(name.startswith(s) for name in names)), "model.")
    head = next((h for h in HEADS if h in names), HEAD)

    def own_name(canonical: str) -> str:
        return head if canonical == HEAD else stem + canonical.removeprefix("model.")

    return own_name
