"""The buffers of a step that draws its tokens: what a loop asks of it, and what it tells."""

from collections.abc import Mapping

from bedstone.build.operand import Role
from bedstone.spec.manifest import Buffer, Dim
from bedstone.spec.sampling import Knobs

MOST_LIKELIEST = 20
"""Log-probabilities that a step tells beside that of the token it drew."""

SETTINGS: Mapping[Role, Role] = {
    "temperature": "chain.temperature",
    "top_k": "chain.top_k",
    "top_p": "chain.top_p",
    "min_p": "chain.min_p",
    "seed": "chain.seed",
}
"""What a sequence's settings are called, and where driven steps leave them for a chain."""

ASKED: tuple[Role, ...] = (
    "edits", "edit_token", "edit_scale", "edit_add", "restricted", "allowed", "report",
    "scores", "logprob", "top_token", "top_logprob",
)  # fmt: skip
"""What a driven step is asked besides, and what it tells; a chain knows none of it."""

KNOBS = Knobs(**{name: name for name in Knobs.__struct_fields__})

CHAINED: Mapping[str, str] = {"sample": "sample_carried", "sample_rows": "sample_carried_rows"}
"""The entry that a chain calls in place of a driven step's."""

_BIASED = 1024
"""Tokens that a caller may bias beyond those that a sequence holds."""


def most_edits(vocab: int, context: int) -> int:
    """Tokens whose logits a step may change for a sequence: all that it can have seen, and more."""
    return min(vocab, context + _BIASED)


def sampler_buffers(groups: Dim, most: int, vocab: int, edits: int) -> dict[str, Buffer]:
    """The buffers by name, over `groups` sequences, `most` at most."""
    each: tuple[Dim, ...] = (groups,)
    changes: tuple[Dim, ...] = (groups, edits)
    likeliest: tuple[Dim, ...] = (groups, MOST_LIKELIEST)
    settings = {
        "temperature": Buffer("f32", each, "input", fill="temperature"),
        "top_k": Buffer("i32", each, "input", fill="top_k"),
        "top_p": Buffer("f32", each, "input", fill="top_p"),
        "min_p": Buffer("f32", each, "input", fill="min_p"),
        "seed": Buffer("i64", each, "input", fill="seed"),
    }
    kept = {f"chain.{name}": Buffer(b.dtype, (most,), "carry") for name, b in settings.items()}
    return {
        **settings,
        **kept,
        "edits": Buffer("i32", each, "input"),
        "edit_token": Buffer("i32", changes, "input"),
        "edit_scale": Buffer("f32", changes, "input"),
        "edit_add": Buffer("f32", changes, "input"),
        "restricted": Buffer("i32", each, "input"),
        "allowed": Buffer("i32", (groups, -(-vocab // 32)), "input"),
        "report": Buffer("i32", each, "input"),
        "scores": Buffer("f32", (groups, vocab), "workspace"),
        "logprob": Buffer("f32", each, "output"),
        "top_token": Buffer("i32", likeliest, "output"),
        "top_logprob": Buffer("f32", likeliest, "output"),
    }
