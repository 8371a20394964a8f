"""The end of the context, where it is no whole number of pages."""

import numpy as np
import pytest

from bedstone.errors import CapacityError
from bedstone.runtime.load import load
from letters import write_tokenizer
from packages import PAGE, Fed, compiled
from tiny_models import IDS, write_tiny

pytestmark = pytest.mark.xdist_group("tiny")

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
