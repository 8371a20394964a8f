"""The end of the context: one that is no whole number of pages, and one of 8,192 positions."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from bedstone.errors import CapacityError
from bedstone.runtime.load import load
from letters import write_tokenizer
from packages import PAGE, Fed, compiled
from tiny_models import IDS, write_tiny

CONTEXT = 40
REACHED = 64
"""Positions of as many whole pages."""


@pytest.fixture(scope="module")
def package(tmp_path_factory, cache):
    folder = tmp_path_factory.mktemp("context")
    write_tiny("llama", folder / "checkpoint")
    write_tokenizer(folder / "checkpoint")
    return compiled(
        str(folder / "checkpoint"), folder / "package", cache, numerics="precise", context=CONTEXT
    )


@pytest.fixture
def session(package, cache):
    with load(package.path, cache=cache) as session:
        yield session


def test_a_prompt_may_fill_it_and_text_ends_with_it(session):
    prompt = (IDS * 4)[:CONTEXT]
    assert len(list(session.generate(prompt, 9))) == 1
    assert len(list(session.generate(prompt[:-3], 9))) == 4
    with pytest.raises(CapacityError, match=f"has {CONTEXT + 1} tokens, the context holds 40"):
        list(session.generate([*prompt, 1], 9))


def test_a_chain_that_nobody_stops_stays_in_its_own_memory(session):
    sequence = Fed(session, range(REACHED // PAGE))
    sequence.feed(IDS)
    written = ("run", "next", "logits", "error", "chain.", "work.")
    kept = [name for name in session.manifest.buffers if not name.startswith(written)]
    before = {name: session.region(name) for name in kept}
    session.repeat("decode_chain", 2 * REACHED, [])
    for name in kept:
        np.testing.assert_array_equal(session.region(name), before[name], err_msg=name)
    position = session.region("chain.position").view(np.int32)[0]
    assert position == REACHED - 1
    for name in ("run", *(name for name in kept if name.endswith((".cos", ".sin")))):
        assert session.manifest.buffers[name].shape[0] > position, name
    assert np.isfinite(session.read("logits")).all()


LONG = 8192
PIECE = 512


@pytest.fixture(scope="module")
def long(tmp_path_factory, cache):
    """A model of 8,192 positions, and a package of it that holds them all."""
    folder = tmp_path_factory.mktemp("long")
    model = write_tiny("llama", folder / "short")
    model.config.max_position_embeddings = LONG
    model.set_attn_implementation("sdpa")
    model.save_pretrained(folder / "checkpoint")
    write_tokenizer(folder / "checkpoint")
    package = compiled(
        str(folder / "checkpoint"), folder / "package", cache, numerics="precise", context=LONG
    )
    return model, package


@pytest.mark.slow
def test_8192_positions_are_attended_to_the_last(long, cache):
    model, package = long
    rng = np.random.default_rng(8)
    ids = rng.integers(3, 61, LONG).tolist()
    with torch.no_grad():
        theirs = model(torch.tensor([ids])).logits[0].numpy()
    ends = [*range(PIECE, LONG, PIECE), LONG - 5]
    with load(package.path, cache=cache) as session:
        sequence = Fed(session, rng.permutation(LONG // PAGE).tolist())
        ours = [sequence.feed(ids[start:end]) for start, end in pairwise((0, *ends)) if start < end]
        last = [sequence.feed([token], "decode") for token in ids[LONG - 5 :]]
        with pytest.raises(CapacityError, match="has 8193 tokens, the context holds 8192"):
            list(session.generate([*ids, 1], 1))
    at = [end - 1 for end in ends] + list(range(LONG - 5, LONG))
    np.testing.assert_allclose([*ours, *last], theirs[at], rtol=0, atol=2e-3)
