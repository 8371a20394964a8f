"""A real chat model, quantized, against `transformers` on the same dequantized weights."""

import numpy as np
import pytest

from smollm2 import REFERENCE, their_logits
from tiny_models import Cached, load

pytestmark = pytest.mark.slow

PROMPT = (504, 3575, 282, 4649, 314)
"""Tokens of a short English sentence."""


def test_smollm2_agrees_with_transformers_on_its_dequantized_weights() -> None:
    loaded, cached = load(REFERENCE, dtype=np.float32), Cached()
    first = loaded.chunks(PROMPT[:3], [3], cached)
    ours = np.concatenate([first, loaded.decode(PROMPT[3:], cached)])
    expected = their_logits(PROMPT)[2:]
    assert np.abs(ours - expected).max() < 1e-4 * np.abs(expected).max()
    assert ours.argmax(axis=1).tolist() == expected.argmax(axis=1).tolist()
