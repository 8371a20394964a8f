"""The Llama family: Llama, Mistral (a window), SmolLM2, Qwen2 (biases on q, k, v) and its MoE."""

from functools import partial

from bedstone.graph.step import Ref
from bedstone.models.attention import attention
from bedstone.models.blocks import decoder
from bedstone.models.body import Body


def llama(body: Body) -> tuple[Ref, Ref]:
    """The logits and next tokens of one step."""
    return decoder(body, partial(attention, head_norm=False))
