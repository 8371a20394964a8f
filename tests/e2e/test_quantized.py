"""Mixtures whose experts are quantized, and checkpoints of half floats: whole packages."""

from pathlib import Path

import numpy as np
import pytest
import torch

from batches import require_same_together
from bedstone.checkpoint.gguf_config import parse_gguf_config
from bedstone.checkpoint.names import expected_tensors, gguf_name
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.lane.plan import RULES
from bedstone.models import step_graph
from bedstone.oracle.step import StepOracle
from bedstone.runtime.load import load
from bedstone.spec.dtype import FORMATS
from checkpoint_files import write_gguf
from kernels.reference import HALVES
from letters import GGUF_LETTERS, write_tokenizer
from packages import Fed, compiled
from tiny_models import IDS, write_tiny

SIZES = {
    "block_count": 2,
    "context_length": 64,
    "embedding_length": 256,
    "feed_forward_length": 256,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.layer_norm_rms_epsilon": 1e-6,
    "rope.freq_base": 10000.0,
    "expert_count": 6,
    "expert_used_count": 3,
    "expert_feed_forward_length": 256,
}
SHARED = {"expert_shared_feed_forward_length": 512}

MIXTURES: dict[str, tuple[str, dict[str, int], dict[str, str]]] = {
    "k-quants": ("qwen2moe", SHARED, {"gate": "q4_k", "up": "q4_k", "down": "q6_k"}),
    "blocks": ("qwen3moe", {}, {"gate": "q4_0", "up": "q4_0", "down": "q4_1"}),
    "unlike": ("qwen2moe", SHARED, {"gate": "q8_0", "up": "q4_1", "down": "q8_0"}),
}
"""Architecture, fields of its own, and the format of each matrix of a gated unit."""


def quantized(held: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Random rows of a format, of values that keep a product near one."""
    form = FORMATS[held]
    blocks = rng.integers(
        0, 256, (*shape[:-1], shape[-1] // form.block, form.block_bytes), np.uint8
    )
    most = {"q4_k": 63 * 8, "q6_k": 64 * 16, "q8_0": 74}.get(held, 5)
    for at in HALVES[held]:
        scales = rng.choice([-1.0, 1.0], blocks.shape[:-1]) / most / np.sqrt(shape[-1])
        blocks[..., at : at + 2] = scales.astype(np.float16)[..., None].view(np.uint8)
    return blocks.reshape(*shape[:-1], -1)


@pytest.fixture(scope="module", params=MIXTURES)
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    arch, own, formats = MIXTURES[request.param]
    rng = np.random.default_rng(len(arch))
    fields = {f"{arch}.{key}": value for key, value in (SIZES | own).items()} | GGUF_LETTERS
    config = parse_gguf_config(
        {
            "general.architecture": arch,
            "tokenizer.ggml.tokens": GGUF_LETTERS["tokenizer.ggml.tokens"],
        }
        | {key: value for key, value in fields.items() if key.startswith(arch)}
        | {f"{arch}.vocab_size": 62},
        ["output.weight"],
        "m.gguf",
        "m",
    )
    tensors, held = {}, {}
    for canonical, shape in expected_tensors(config).items():
        name = gguf_name(canonical)
        part = name.split(".")[2].removeprefix("ffn_").split("_")[0] if "ffn_" in name else ""
        if part in formats and "inp" not in name and len(shape) > 1:
            held[name] = formats[part]
        elif len(shape) > 1 and "inp" not in name:
            held[name] = "q8_0"
        if name in held:
            tensors[name] = quantized(held[name], shape, rng)
        else:
            centre = 1.0 if "norm" in name else 0.0
            tensors[name] = rng.normal(centre, 0.2, shape).astype("<f4")
    fields[f"{arch}.vocab_size"] = 62
    path = tmp_path_factory.mktemp(arch) / "m.gguf"
    return write_gguf(path, fields, tensors, arch=arch, held=held)


@pytest.mark.parametrize("numerics", ["precise", "quantized"])
def test_quantized_experts_agree_with_the_oracle(checkpoint, cache, tmp_path, numerics):
    opened = open_checkpoint(str(checkpoint))
    formats = {name: opened.format(name) for name in opened.constants}
    values = {name: opened.values(name) for name in opened.constants}
    graph = step_graph(opened.config, "decode", formats=formats, rows=1, capacity=32)
    oracle = StepOracle(graph, values, np.float32, numerics=numerics)
    expected = [
        oracle.run({"token": [token]}, {"pos": at + 1})["logits"][0] for at, token in enumerate(IDS)
    ]
    package = compiled(str(checkpoint), tmp_path / "package", cache, numerics=numerics)
    with load(package.path, cache=cache, tokens=64) as session:
        alone = Fed(session, (1, 0))
        ours = np.stack([alone.feed([token], "decode") for token in IDS])
        whole = Fed(session, (0, 1))
        np.testing.assert_array_equal(whole.feed(IDS), ours[-1])
    # a code that rounds the other way moves a logit by more than float32 does; some sets round what
    # an attention multiplies, and the oracle does not
    near = {"precise": 1e-5, "quantized": 6e-2}[numerics]
    assert np.abs(ours - expected).max() < near * np.abs(expected).max()


def test_rules_held_back_change_no_bit_of_codes_either(checkpoint, cache, tmp_path):
    logits = []
    for held in ((), RULES):
        package = compiled(str(checkpoint), tmp_path / f"{len(held)}", cache, held=held)
        with load(package.path, cache=cache, tokens=64) as session:
            sequence = Fed(session, (1, 0))
            logits.append(
                [sequence.feed(IDS[:9]), *(sequence.feed([t], "decode") for t in IDS[9:])]
            )
    np.testing.assert_array_equal(*logits)


@pytest.mark.slow
@pytest.mark.parametrize("numerics", ["precise", "quantized"])
@pytest.mark.parametrize("many", [8, 9, 64])
def test_a_batch_of_quantized_matrices_is_its_sequences(
    checkpoint, cache, tmp_path, numerics, many
):
    """As many rows as a GEMV takes, one more, and the most there are."""
    prompts = [(IDS * 3)[i % 12 : i % 12 + 1 + 5 * i % 24] for i in range(many)]
    package = compiled(
        str(checkpoint), tmp_path / "package", cache, numerics=numerics, sequences=many
    )
    with load(package.path, cache=cache, tokens=64 * many, sequences=many) as session:
        require_same_together(session, prompts, steps=4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "f16"])
@pytest.mark.parametrize("name", ["qwen3-next", "qwen2-moe", "deepseek-v2-groups"])
def test_half_floats_are_read_as_they_are(name, dtype, cache, tmp_path):
    half = write_tiny(name, tmp_path / "single").to(dtype)
    half.save_pretrained(tmp_path / "half")
    write_tokenizer(tmp_path / "half")
    model = type(half).from_pretrained(
        tmp_path / "half", dtype=torch.float32, attn_implementation="eager"
    )
    with torch.no_grad():
        theirs = model.eval()(torch.tensor([IDS])).logits[0].numpy()
    package = compiled(str(tmp_path / "half"), tmp_path / "package", cache, numerics="precise")
    with load(package.path, cache=cache, tokens=64) as session:
        sequence = Fed(session, (1, 0))
        ours = np.stack([sequence.feed([token], "decode") for token in IDS])
    assert np.abs(ours - theirs).max() < 1e-4 * np.abs(theirs).max()


@pytest.mark.parametrize("name", ["qwen2-moe", "qwen3"])
def test_rounded_activations_leave_the_same_bytes_whatever_the_chunks(name, cache, tmp_path):
    half = write_tiny(name, tmp_path / "single").to(torch.bfloat16)
    half.save_pretrained(tmp_path / "half")
    write_tokenizer(tmp_path / "half")
    kept = {}
    for numerics in ("quantized", "precise"):
        package = compiled(str(tmp_path / "half"), tmp_path / numerics, cache, numerics=numerics)
        with load(package.path, cache=cache, tokens=64) as session:
            for sizes in ((1,) * len(IDS), (len(IDS),), (2, len(IDS) - 2)):
                sequence, at = Fed(session, (1, 0)), 0
                for size in sizes:
                    kind = "decode" if size == 1 else "prefill"
                    last = sequence.feed(IDS[at : at + size], kind)
                    at += size
                kept.setdefault(numerics, []).append(last)
        for other in kept[numerics][1:]:
            np.testing.assert_array_equal(other, kept[numerics][0])
    rounded, precise = (kept[numerics][0] for numerics in ("quantized", "precise"))
    assert np.abs(rounded - precise).max() < 2e-2 * np.abs(precise).max()
