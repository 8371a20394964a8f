"""Real text from a real model: its step graph, greedy tokens, logits, what eight bits cost."""

from datetime import UTC, datetime

import numpy as np
import pytest

import tiny_models
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.lane.plan import RULES
from bedstone.runtime.generate import Generator
from bedstone.runtime.load import load
from packages import Fed, compiled
from smollm2 import REFERENCE, TEXT, their_logits
from tiny_models import Cached

pytestmark = pytest.mark.slow

QUESTIONS = (
    "Why is the sky blue?",
    "Write a Python function that reverses a string.",
    "Name three rivers in Europe and the countries they cross.",
)
PROMPT = (504, 3575, 282, 4649, 314)
"""Tokens of a short English sentence."""

MADE = 64
POSITIONS = 200


@pytest.fixture(scope="module")
def checkpoint():
    opened = open_checkpoint(REFERENCE)
    yield opened
    opened.close()


@pytest.fixture(scope="module", params=["precise", "quantized"])
def numerics(request):
    return request.param


@pytest.fixture(scope="module")
def packages(tmp_path_factory, cache):
    return {
        numerics: compiled(
            REFERENCE, tmp_path_factory.mktemp(numerics) / "package", cache, numerics=numerics
        )
        for numerics in ("precise", "quantized")
    }


def prompt(checkpoint, question: str) -> list[int]:
    messages = [{"role": "user", "content": question}]
    text = checkpoint.chat_template.render(messages, now=datetime(2026, 1, 1, tzinfo=UTC))
    return checkpoint.tokenizer.encode(text, special=True)


def test_its_step_graph_agrees_with_transformers():
    loaded, cached = tiny_models.load(REFERENCE, dtype=np.float32), Cached()
    first = loaded.chunks(PROMPT[:3], [3], cached)
    ours = np.concatenate([first, loaded.decode(PROMPT[3:], cached)])
    expected = their_logits(PROMPT)[2:]
    assert np.abs(ours - expected).max() < 1e-4 * np.abs(expected).max()
    assert ours.argmax(axis=1).tolist() == expected.argmax(axis=1).tolist()


@pytest.mark.parametrize("question", QUESTIONS)
def test_greedy_tokens_equal_transformers(checkpoint, packages, cache, question):
    ids = prompt(checkpoint, question)
    with load(packages["precise"].path, cache=cache, tokens=256) as session:
        made = list(Generator(session).generate(ids, MADE))
    assert len(made) == MADE
    # each token is the arg-max after those before it: so a greedy loop of theirs makes the same
    theirs = their_logits([*ids, *made[:-1]])[len(ids) - 1 :]
    assert theirs.argmax(axis=1).tolist() == made


def each_position(package, cache, ids):
    with load(package.path, cache=cache, tokens=256) as session:
        sequence = Fed(session, range(7, -1, -1))
        return np.stack([sequence.feed([token], "decode") for token in ids])


@pytest.fixture(scope="module")
def text_logits(checkpoint, packages, cache):
    ids = checkpoint.tokenizer.encode(TEXT, special=False)[:POSITIONS]
    assert len(ids) == POSITIONS
    return ids, {name: each_position(package, cache, ids) for name, package in packages.items()}


def test_precise_logits_agree_with_transformers(text_logits):
    ids, ours = text_logits
    theirs = their_logits(ids)
    assert np.abs(ours["precise"] - theirs).max() < 1e-4 * np.abs(theirs).max()


def log_softmax(logits):
    logits = logits.astype(np.float64)
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def test_quantized_activations_cost_under_a_hundredth_of_a_nat(text_logits):
    _, ours = text_logits
    precise, quantized = log_softmax(ours["precise"]), log_softmax(ours["quantized"])
    divergence = (np.exp(precise) * (precise - quantized)).sum(axis=1)
    assert divergence.min() > -1e-12
    assert 0 < divergence.mean() < 0.01


def test_any_chunking_leaves_the_same_bytes(checkpoint, packages, cache, numerics):
    ids = checkpoint.tokenizer.encode(TEXT, special=False)[:70]
    kept = {}
    with load(packages[numerics].path, cache=cache, tokens=96) as session:
        for sizes in ((1,) * 70, (70,), (33, 37), (1, 31, 8, 30)):
            sequence, at = Fed(session, (2, 0, 1)), 0
            for size in sizes:
                last = sequence.feed(ids[at : at + size], "decode" if size == 1 else "prefill")
                at += size
            kept[sizes] = last, sequence.cached()
    (logits, states), *others = kept.values()
    for other_logits, other_states in others:
        np.testing.assert_array_equal(other_logits, logits)
        for name, rows in other_states.items():
            np.testing.assert_array_equal(rows, states[name], err_msg=name)


def test_fusing_changes_no_bit_of_a_text(checkpoint, packages, cache, tmp_path, numerics):
    apart = compiled(REFERENCE, tmp_path / "apart", cache, numerics=numerics, held=RULES)
    made = []
    for package in (packages[numerics], apart):
        with load(package.path, cache=cache, tokens=256) as session:
            for question in QUESTIONS:
                tokens = list(Generator(session).generate(prompt(checkpoint, question), MADE))
                made.append((tokens, session.read("logits")))
    for (fused, logits), (held, theirs) in zip(made[:3], made[3:], strict=True):
        assert fused == held
        assert len(fused) == MADE
        np.testing.assert_array_equal(logits, theirs)


def test_the_reference_reader_accepts_the_manifest(packages, reference, numerics):
    answer = reference.ask((packages[numerics].path / "manifest.json").read_text())
    assert answer.messages == ()
    assert answer.accepted
