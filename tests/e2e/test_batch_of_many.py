"""The most sequences that one step decodes: each is bit for bit what it is alone."""

from pathlib import Path

import numpy as np
import pytest

from batches import PAGES, require_same_together
from bedstone.build.request import MOST_SEQUENCES
from bedstone.runtime.load import load
from bedstone.spec.codec import parse
from bedstone.spec.manifest import Batch
from bedstone.spec.package import MANIFEST
from letters import write_tokenizer
from packages import PAGE, compiled
from tiny_models import write_tiny

pytestmark = pytest.mark.slow

LENGTHS = [1 + 7 * i % 53 for i in range(MOST_SEQUENCES)]
"""Prompts of every length from one token to nearly two pages, in no order."""


@pytest.fixture(
    scope="module", params=["gemma3-capped", "qwen2", "qwen3-next-some-dense", "deepseek-v3"]
)
def package(request, tmp_path_factory, cache):
    """Between them windows, biases, mixtures, recurrent states and latents."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    write_tiny(request.param, folder / "checkpoint")
    write_tokenizer(folder / "checkpoint")
    return compiled(str(folder / "checkpoint"), folder / "many", cache, sequences=MOST_SEQUENCES)


def test_a_batch_of_64_is_64_sequences(package, cache):
    rng = np.random.default_rng(64)
    prompts = [rng.integers(0, 61, length).tolist() for length in LENGTHS]
    tokens = PAGES * PAGE * MOST_SEQUENCES
    with load(package.path, cache=cache, tokens=tokens, sequences=MOST_SEQUENCES) as session:
        require_same_together(session, prompts, steps=6)


def test_the_reference_reader_accepts_a_batch_of_64(package, reference):
    text = (package.path / MANIFEST).read_text()
    assert parse(text).programs["decode_many"].batch == Batch(MOST_SEQUENCES, 1)
    answer = reference.ask(text)
    assert answer.messages == ()
    assert answer.accepted
