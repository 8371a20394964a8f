"""Qwen3, dense or of experts: a Llama whose query and key heads are normed before they turn."""

from functools import partial

from bedstone.graph.step import Ref
from bedstone.models.attention import attention
from bedstone.models.blocks import decoder
from bedstone.models.body import Body


def qwen3(body: Body) -> tuple[Ref, Ref]:
    """The logits and next tokens of one step."""
    return decoder(body, partial(attention, head_norm=True))
