"""Gemma 3, text: scaled embeddings, norms around each block, windows on most layers."""

import math
from functools import partial

import ml_dtypes
import numpy as np

from bedstone.graph.step import Out, Ref, Scale
from bedstone.models.attention import attention
from bedstone.models.blocks import EMBEDDING, decoder, embed
from bedstone.models.body import Body
from bedstone.spec.dtype import FormatName


def gemma3(body: Body) -> tuple[Ref, Ref]:
    """The logits and next tokens of one step."""
    return decoder(body, partial(attention, head_norm=True), _scaled)


def embedding_scale(hidden: int, held: FormatName) -> float:
    """The root of the model's width, rounded as a model trained in the format `held` has it.

    Blocks tell nothing of that dtype, so theirs stays unrounded.
    """
    root = np.float32(math.sqrt(hidden))
    if held == "bf16":
        return float(root.astype(ml_dtypes.bfloat16))
    return float(root.astype(np.float16)) if held == "f16" else float(root)


def _scaled(body: Body) -> Ref:
    """The embedded ids times the scale."""
    x = embed(body, "embedded")
    scale = embedding_scale(body.config.hidden, body.formats[EMBEDDING])
    return body.build.add(Scale(x, Out("x.0"), scale))
