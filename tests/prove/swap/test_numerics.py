"""Precise against quantized: no op and no place in common, and still a report that says how far."""

from dataclasses import replace
from unittest.mock import patch

import gguf
import numpy as np
import pytest

from bedstone.build import lane
from bedstone.checkpoint.gguf_config import parse_gguf_config
from bedstone.checkpoint.names import expected_tensors, gguf_name
from bedstone.library.catalog import cpu_kernels
from bedstone.prove.swap.diff import diff
from bedstone.prove.swap.report import lines
from bedstone.prove.swap.swap import Settings, prove_swap
from bedstone.prove.swap.verdict import Bounds
from bedstone.runtime.load import read_parts
from checkpoint_files import write_gguf
from letters import GGUF_LETTERS
from packages import compiled

SIZES = {
    "llama.block_count": 2,
    "llama.context_length": 64,
    "llama.embedding_length": 64,
    "llama.feed_forward_length": 96,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-6,
    "llama.rope.freq_base": 10000.0,
    "llama.vocab_size": 62,
}


def write_model(path):
    """A model whose matrices are held in blocks of eight bits."""
    rng, tensors, held = np.random.default_rng(1), {}, {}
    known = {"general.architecture": "llama"} | SIZES
    known["tokenizer.ggml.tokens"] = GGUF_LETTERS["tokenizer.ggml.tokens"]
    config = parse_gguf_config(known, ["output.weight"], "m.gguf", "m")
    for canonical, shape in expected_tensors(config).items():
        name, flat = gguf_name(canonical), len(shape) == 1
        values = rng.normal(float(flat), 0.2, shape).astype(np.float32)
        tensors[name] = values if flat else gguf.quantize(values, gguf.GGMLQuantizationType.Q8_0)
        if not flat:
            held[name] = "q8_0"
    return write_gguf(path, SIZES | GGUF_LETTERS, tensors, arch="llama", held=held)


@pytest.fixture(scope="module")
def sides(tmp_path_factory, cache):
    """The model in both numerics, over tables of float32: their states have the same size."""
    folder = tmp_path_factory.mktemp("numerics")
    model = str(write_model(folder / "m.gguf"))
    with patch.object(lane, "cpu_kernels", lambda _: cpu_kernels()):
        return [
            read_parts(compiled(model, folder / n, cache, numerics=n, sequences=2).path)
            for n in ("precise", "quantized")
        ]


def proved(sides, cache, bounds):
    return prove_swap(*sides, Settings(bounds, cache), lambda _: None)


@pytest.fixture(scope="module")
def narrowed(tmp_path_factory, cache):
    """The model in both numerics, as they are: what is kept of positions is of another type."""
    folder = tmp_path_factory.mktemp("narrowed")
    model = str(write_model(folder / "m.gguf"))
    return [
        read_parts(compiled(model, folder / n, cache, numerics=n).path)
        for n in ("precise", "quantized")
    ]


@pytest.mark.parametrize(
    ("kl", "word", "rule"),
    [(0.5, "PASS", "logit evidence"), (1e-9, "FAIL", "flip")],
)
def test_tables_of_another_type_are_judged_by_what_is_made_of_them(narrowed, cache, kl, word, rule):
    proof = proved(narrowed, cache, Bounds(kl=kl))
    assert (proof.verdict.word, proof.verdict.rule) == (word, rule)
    assert set(proof.diff.resized) == {"k.0", "v.0", "k.1", "v.1"}
    assert proof.evidence.logits.rows > 0
    assert 0 < proof.evidence.logits.quantile(0.5) <= proof.evidence.logits.kl
    told = lines(proof)
    assert any(line.startswith("diff: state `k.0`: ") and "bytes a token" in line for line in told)
    assert any(line.startswith("logits: KL ") and "nine of ten" in line for line in told)


def test_a_table_that_only_one_side_has_leaves_nothing_to_compare(narrowed):
    a = narrowed[0].manifest
    states = {**a.states, "more": a.states["k.0"]}
    assert diff(a, replace(a, states=states)).apart == ("the states",)


def test_coded_activations_are_told_from_no_change_at_all(sides, cache):
    proof = proved(sides, cache, Bounds(drift=1e-3))
    assert (proof.verdict.word, proof.verdict.rule) == ("FAIL", "drift")
    assert proof.evidence.logits.divergences
    told = lines(proof)
    depth = [line for line in told if line.startswith("depth: state ")]
    assert [line.split("`")[1] for line in depth] == ["k.0", "v.0", "k.1", "v.1"]
    assert any(line.startswith("logits: KL ") and "nine of ten" in line for line in told)
    # a span of a whole program is told by its first ops
    assert max(map(len, told)) < 600


def test_under_bounds_for_eight_bits_logits_are_the_evidence(sides, cache):
    proof = proved(sides, cache, Bounds(kl=0.5, drift=0.2))
    assert (proof.verdict.word, proof.verdict.rule) == ("PASS", "logit evidence")
    assert 0 < proof.evidence.logits.quantile(0.5) <= proof.evidence.logits.kl
