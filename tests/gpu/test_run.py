"""Models compiled for the GPU at hand: against transformers, and against the CPU's own."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from bedstone.checkpoint.reference import open_checkpoint
from bedstone.lane.plan import RULES
from bedstone.runtime.generate import Generator
from bedstone.runtime.load import load
from command_line import bedstone
from drawn_texts import EDITED, SAMPLINGS, by_model
from letters import write_tokenizer
from packages import Fed, Together, compiled
from tiny_models import FAMILIES, IDS, LONG, write_tiny

CHECKPOINT = os.environ.get("BEDSTONE_TEST_CHECKPOINT")
"""A real checkpoint to hold the two devices against each other with, in place of a random one."""

SMOLLM2 = {
    "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
    "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 2048,
    "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
NEAR = {"precise": 1e-4, "quantized": 3e-2}
"""How far logits may lie from those of float32, as a part of their norm."""

SPLIT = "split_attention"
"""Keys in two parts: where the first is no multiple of 16 wide, sums go in another order."""


class Tiny:
    """A tiny model on disk in one dtype, and its float32 logits [ids, vocab] of `LONG`."""

    def __init__(self, name: str, folder: Path, dtype: torch.dtype) -> None:
        self.path, self.name = folder, name
        model = write_tiny(name, folder)
        if dtype != torch.float32:
            # what is no parameter, such as the angles of rope, would be rounded by `to` as well
            for weight in model.parameters():
                weight.data = weight.data.to(dtype)
            model.save_pretrained(folder)
            for weight in model.parameters():
                weight.data = weight.data.float()
        write_tokenizer(folder)
        with torch.no_grad():
            self.theirs = model(torch.tensor([LONG])).logits[0].numpy()


@pytest.fixture(scope="module", params=FAMILIES)
def tiny(request, tmp_path_factory) -> Tiny:
    return Tiny(request.param, tmp_path_factory.mktemp(request.param), torch.float32)


@pytest.fixture(scope="module", params=FAMILIES)
def half(request, tmp_path_factory) -> Tiny:
    return Tiny(request.param, tmp_path_factory.mktemp(request.param), torch.bfloat16)


def fed(package, **options) -> Iterator[Fed]:
    with load(package.path, device="cuda", tokens=96, **options) as session:
        yield Fed(session, (2, 0, 1))


def apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


def steps(sequence: Fed, ids) -> np.ndarray:
    return np.stack([sequence.feed([token], "decode") for token in ids])


def test_every_family_is_transformers_step_by_step_and_by_chunks(tiny, target, cache, tmp_path):
    package = compiled(str(tiny.path), tmp_path / "p", cache, target, numerics="precise")
    for sequence in fed(package):
        assert apart(steps(sequence, LONG), tiny.theirs) < NEAR["precise"]
    for sequence in fed(package):
        ours = [sequence.feed(LONG[:33]), sequence.feed(LONG[33:])]
        assert apart(np.stack(ours), tiny.theirs[[32, 44]]) < NEAR["precise"]


@pytest.mark.parametrize("numerics", ["precise", "quantized"])
def test_every_family_in_bfloat16(half, numerics, target, cache, tmp_path):
    package = compiled(str(half.path), tmp_path / "p", cache, target, numerics=numerics)
    for sequence in fed(package):
        assert apart(steps(sequence, LONG), half.theirs) < NEAR[numerics]
    for sequence in fed(package):
        assert apart(sequence.feed(LONG), half.theirs[-1]) < NEAR[numerics]


def test_tokens_are_drawn_as_the_model_says(target, cache, tmp_path):
    write_tiny("qwen3-next", tmp_path / "checkpoint")
    write_tokenizer(tmp_path / "checkpoint")
    many = len(SAMPLINGS) + len(EDITED)
    options = {"numerics": "precise", "sampler": True, "sequences": many}
    package = compiled(str(tmp_path / "checkpoint"), tmp_path / "p", cache, target, **options)
    with load(package.path, device="cuda", tokens=64 * many, sequences=many) as session:
        said = [list(session.generate(LONG[:9], 20, (), s)) for s in (*SAMPLINGS, *EDITED)]
        assert said == [by_model(session, LONG[:9], s, 20) for s in (*SAMPLINGS, *EDITED)]
        texts: list[list[int]] = [[] for _ in said]
        together = [LONG[:9]] * many, 20, (), [*SAMPLINGS, *EDITED]
        for index, token in session.generate_together(*together):
            texts[index].append(token)
        assert texts == said


def test_rules_held_back_change_no_bit(tiny, target, cache, tmp_path):
    """Each op by a kernel of its own: all fusions at once."""
    made = []
    for number, held in enumerate(((), tuple(r for r in RULES if r != SPLIT), RULES)):
        package = compiled(
            str(tiny.path), tmp_path / str(number), cache, target, numerics="precise", held=held
        )
        for sequence in fed(package):
            made.append(np.stack([sequence.feed(IDS[:7]), *steps(sequence, IDS[7:])]))
    np.testing.assert_array_equal(made[0], made[1])
    assert apart(made[2], made[0]) < NEAR["precise"]


def test_a_batch_is_its_sequences(tiny, target, cache, tmp_path):
    package = compiled(
        str(tiny.path), tmp_path / "p", cache, target, numerics="precise", sequences=3
    )
    alone = []
    with load(package.path, device="cuda", tokens=6 * 32, sequences=3) as session:
        prompts = (IDS[:5], IDS[3:9], IDS[:1])
        pages = ((0, 1), (2, 3), (4, 5))
        for number, prompt in enumerate(prompts):
            sequence = Fed(session, pages[number], slot=number + 1)
            sequence.feed(prompt)
            alone.append([sequence.feed([token], "decode") for token in (7, 8)])
        fresh = [Fed(session, pages[number], slot=number + 1) for number in range(3)]
        for number, sequence in enumerate(fresh):
            Fed.__init__(sequence, session, pages[number], slot=number + 1)
            sequence.feed(prompts[number])
        together = Together(fresh)
        made = [together.feed([token] * 3) for token in (7, 8)]
    for number in range(3):
        np.testing.assert_array_equal([rows[number] for rows in made], alone[number])


def test_a_chain_goes_on_as_fed_steps_do(tiny, target, cache, tmp_path):
    package = compiled(str(tiny.path), tmp_path / "p", cache, target, numerics="precise")
    for told in fed(package):
        expected, tokens = [told.feed(IDS)], [told.next()]
        for _ in range(20):
            expected.append(told.feed([tokens[-1]], "decode"))
            tokens.append(told.next())
    for chained in fed(package):
        ours = [chained.feed(IDS), *(chained.chain() for _ in range(20))]
        np.testing.assert_array_equal(np.stack(ours), np.stack(expected))
        run = chained.session.read("run")
        assert run[len(IDS) : len(IDS) + 21].tolist() == tokens


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> str:
    """The one that was given, else one of SmolLM2's sizes, random, in bfloat16."""
    if CHECKPOINT:
        return CHECKPOINT
    folder = tmp_path_factory.mktemp("smollm2")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**SMOLLM2)
    model = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        for key, weight in model.named_parameters():
            weight.normal_(1.0 if "norm" in key else 0.0, 0.1)
    model.to(torch.bfloat16).save_pretrained(folder)
    write_tokenizer(folder)
    return str(folder)


def test_text_is_the_cpus_in_precise(checkpoint, target, cache, tmp_path):
    opened = open_checkpoint(checkpoint)
    ids = opened.tokenizer.encode("Why is the sky blue", special=False)
    opened.close()
    texts = []
    for device, at in (("cpu", "auto"), ("cuda", target)):
        package = compiled(
            checkpoint, tmp_path / device, cache, at, numerics="precise", context=512
        )
        options = {"cache": cache} if device == "cpu" else {}
        with load(package.path, device=device, tokens=256, **options) as session:
            texts.append(list(Generator(session).generate(ids, 128)))
    assert texts[0] == texts[1]


def test_the_command_runs_on_the_gpu(checkpoint, monkeypatch, cache):
    monkeypatch.setenv("BEDSTONE_CACHE", str(cache))
    asked = ("run", checkpoint, "--prompt", "abc", "--raw", "--max-tokens", "8", "--context", "256")
    for numerics in ("precise", "quantized"):
        ended = bedstone(*asked, "--device", "cuda", "--numerics", numerics)
        assert (ended.code, "tok/s" in ended.err) == (0, True), ended.err
        assert ended.out
