"""The rotation a Hugging Face config asks for, wherever and under whichever key it says so.

Old configs keep the base in `rope_theta` and the scaling in `rope_scaling` under `type`, newer ones
under `rope_type`, the newest put all of it into `rope_parameters`.
"""

from collections.abc import Callable, Mapping
from typing import Literal

from bedstone.checkpoint.config import RopeConfig
from bedstone.checkpoint.fields import FieldRules, Fields, require_fields
from bedstone.checkpoint.rope import (
    Dynamic,
    Linear,
    Llama3,
    Scaling,
    Unscaled,
    Yarn,
    rope_config,
    yarn_attention_factor,
    yarn_magnitude,
)
from bedstone.errors import WeightError

PLACES = ("rope_parameters", "rope_scaling")
DEFAULT_THETA = 10000.0
SHARED = frozenset({"type", "rope_type", "rope_theta", "partial_rotary_factor"})


def parse_rope(
    fields: Fields,
    head_dim: int,
    *,
    kind: Literal["neox", "pair"] = "neox",
    share: float = 1.0,
    inert: Mapping[str, str] | None = None,
) -> RopeConfig:
    """Read base, rotated width and scaling of a config whose heads are `head_dim` wide.

    `share` of a head turns where the config does not say; `inert` are fields the family may put
    beside the scaling's own, with the reason why they change nothing.

    Raises `WeightError` where the scaling kind or one of its fields is not known.
    """
    table = _table(fields)
    keys, parse = KINDS[_kind(table)]
    require_fields(table.values, FieldRules(SHARED | keys, inert or {}), table.where)
    theta = table.real("rope_theta", fields.real("rope_theta", DEFAULT_THETA))
    share = table.real("partial_rotary_factor", fields.real("partial_rotary_factor", share))
    return rope_config(kind, int(head_dim * share), theta, parse(table, fields))


def parse_score_factor(fields: Fields) -> float:
    """What yarn's `mscale_all_dim` multiplies attention scores by: its magnitude, squared.

    Queries and keys would each take the magnitude whole, unrotated values too.
    """
    table = _table(fields)
    if _kind(table) != "yarn" or not table.has("mscale_all_dim"):
        return 1.0
    return yarn_magnitude(_yarn_factor(table, fields), table.real("mscale_all_dim")) ** 2


def _table(fields: Fields) -> Fields:
    tables = [table for place in PLACES if (table := fields.table(place)) is not None]
    if len(tables) == len(PLACES) and tables[0].values != tables[1].values:
        raise WeightError(
            f"`{fields.where}` has both `rope_parameters` and `rope_scaling`, which differ"
        )
    return tables[0] if tables else Fields({}, fields.where)


def _kind(table: Fields) -> str:
    kind = table.text("rope_type", table.text("type", "default"))
    if kind not in KINDS:
        raise WeightError(
            f"`{table.where}` has rope_type `{kind}`, which is not known: expected one of "
            + ", ".join(f"`{known}`" for known in KINDS)
        )
    return kind


def _original(table: Fields, fields: Fields) -> int:
    """The length the model was first trained for; outside the table it takes precedence."""
    name = "original_max_position_embeddings"
    inner = table.size(name, fields.size("max_position_embeddings"))
    return fields.size(name, inner)


def _parse_linear(table: Fields, _fields: Fields) -> Scaling:
    return Linear(table.real("factor"))


def _parse_dynamic(table: Fields, fields: Fields) -> Scaling:
    """Within the original length the frequencies are plain; a longer context is refused.

    Beyond that length they would change with the length of the sequence.
    """
    context, original = fields.size("max_position_embeddings"), _original(table, fields)
    if context > original:
        raise WeightError(
            f"`{table.where}` has rope_type `dynamic` and a context of {context} tokens: "
            f"supported up to the original length, {original}"
        )
    return Dynamic(table.real("factor"), original)


def _parse_llama3(table: Fields, fields: Fields) -> Scaling:
    return Llama3(
        factor=table.real("factor"),
        low=table.real("low_freq_factor"),
        high=table.real("high_freq_factor"),
        original=_original(table, fields),
    )


def _parse_yarn(table: Fields, fields: Fields) -> Scaling:
    original, factor = _original(table, fields), _yarn_factor(table, fields)
    mscales = [table.real(n) if table.has(n) else None for n in ("mscale", "mscale_all_dim")]
    return Yarn(
        factor=factor,
        original=original,
        attention_factor=table.real("attention_factor", yarn_attention_factor(factor, *mscales)),
        beta_fast=table.real("beta_fast", 32.0),
        beta_slow=table.real("beta_slow", 1.0),
        truncate=table.flag("truncate", default=True),
    )


def _yarn_factor(table: Fields, fields: Fields) -> float:
    return table.real("factor", fields.size("max_position_embeddings") / _original(table, fields))


ORIGINAL = "original_max_position_embeddings"

KINDS: Mapping[str, tuple[frozenset[str], Callable[[Fields, Fields], Scaling]]] = {
    "default": (frozenset(), lambda _table, _fields: Unscaled()),
    "linear": (frozenset({"factor"}), _parse_linear),
    "dynamic": (frozenset({"factor", ORIGINAL}), _parse_dynamic),
    "llama3": (
        frozenset({"factor", "low_freq_factor", "high_freq_factor", ORIGINAL}),
        _parse_llama3,
    ),
    "yarn": (
        frozenset(
            {
                "factor", "attention_factor", "beta_fast", "beta_slow", "mscale",
                "mscale_all_dim", "truncate", "finetuned", ORIGINAL,
            }
        ),
        _parse_yarn,
    ),
}  # fmt: skip
"""Scaling kinds: the fields each knows, and what they make. `finetuned` only tells of training."""
