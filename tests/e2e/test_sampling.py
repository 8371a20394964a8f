"""Packages with a sampler: what they say, alone and together, and what a reader makes of them."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from bedstone.errors import CallerError, CapacityError, ManifestError
from bedstone.runtime.generate import Generator
from bedstone.runtime.load import load
from bedstone.runtime.session import Session
from bedstone.spec.codec import serialize
from bedstone.spec.package import LOCK, MANIFEST
from bedstone.spec.sampling import SAMPLING, Sampling
from bedstone.verify.sampling import SETTINGS
from drawn_texts import EDITED, SAMPLINGS, by_model
from e2e_cli import run_cli
from letters import write_tokenizer
from packages import PAGE, Fed, compiled
from smollm2 import REFERENCE
from tiny_models import IDS, LONG, write_tiny

MANY = 3


@pytest.fixture(scope="module", params=["llama-biases", "qwen3-next"])
def checkpoint(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param) / "checkpoint"
    write_tiny(request.param, folder)
    write_tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def package(checkpoint, cache):
    out = checkpoint.parent / "sampler"
    return compiled(str(checkpoint), out, cache, sequences=MANY, sampler=True)


@pytest.fixture(scope="module")
def plain(checkpoint, cache):
    return compiled(str(checkpoint), checkpoint.parent / "plain", cache, sequences=MANY)


@pytest.fixture
def session(package, cache) -> Iterator[Session]:
    with load(package.path, cache=cache, tokens=2 * PAGE * MANY, sequences=MANY) as loaded:
        yield loaded


def test_greedy_it_says_to_the_bit_what_a_package_without_says(package, plain, cache):
    ends = []
    for one in (package, plain):
        with load(one.path, cache=cache, tokens=4 * PAGE) as session:
            sequence = Fed(session, (2, 0, 1))
            logits = [sequence.feed(IDS), *(sequence.feed([token], "decode") for token in LONG[:4])]
            logits += [sequence.chain() for _ in range(4)]
            tokens = list(session.generate(IDS, 20))
            ends.append((np.stack(logits).tobytes(), sequence.next(), tokens))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("sampling", [*SAMPLINGS, *EDITED])
def test_a_text_is_drawn_as_its_sampling_says(session, sampling):
    prompt = LONG[:9]
    said = list(session.generate(prompt, 20, (), sampling))
    assert said == by_model(session, prompt, sampling, 20)
    assert said == list(session.generate(prompt, 20, (), sampling))


def test_another_seed_is_another_text(session):
    texts = {
        tuple(session.generate(LONG[:9], 20, (), Sampling(1.5, seed=seed))) for seed in range(6)
    }
    assert len(texts) == 6


def test_each_of_several_says_what_it_says_alone(session):
    prompts = (LONG[:7], LONG[3:5], LONG[:30])
    samplings = (SAMPLINGS[1], EDITED[1], Sampling())
    alone = [list(session.generate(p, 16, (), s)) for p, s in zip(prompts, samplings, strict=True)]
    for order in ((0, 1, 2), (2, 0, 1)):
        texts: list[list[int]] = [[] for _ in order]
        given = [prompts[i] for i in order], 16, (), [samplings[i] for i in order]
        for index, made in session.generate_together(*given):
            texts[index].append(made)
        assert texts == [alone[i] for i in order]


def test_a_chain_goes_on_with_the_settings_of_the_step_it_follows(session):
    one = Generator(session, sampling=SAMPLINGS[0])
    first = [one.prefill(LONG[:5]), *one.advance(7)]
    by_step = Generator(session, sampling=SAMPLINGS[0])
    again = [by_step.prefill(LONG[:5])]
    for _ in range(7):
        by_step._chain = None
        again.append(by_step.step())
    assert first == again


def test_what_a_package_cannot_draw_is_refused(plain, session, cache):
    with load(plain.path, cache=cache, tokens=PAGE) as without:
        for sampling in (SAMPLINGS[0], EDITED[0]):
            with pytest.raises(CallerError, match="--sampler"):
                next(without.generate(IDS, 3, (), sampling))
        assert len(list(without.generate(IDS, 3, (), Sampling(top_k=5, seed=3)))) == 3
    with pytest.raises(CallerError, match="log-prob"):
        next(session.generate(IDS, 3, (), Sampling(logprobs=2)))
    with pytest.raises(CapacityError, match="61 tokens"):
        next(session.generate(IDS, 3, (), Sampling(bias=dict.fromkeys(range(99), 1.0))))


def test_the_record_is_pinned_by_the_lock(package, tmp_path, cache):
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in package.path.iterdir():
        (copy / path.name).symlink_to(path)
    text = (package.path / SAMPLING).read_bytes()
    assert package.lock.sampling == hashlib.sha256(text).hexdigest()
    (copy / SAMPLING).unlink()
    with pytest.raises(ManifestError, match="found none"):
        load(copy, cache=cache, tokens=PAGE)
    (copy / SAMPLING).write_bytes(text + b" ")
    with pytest.raises(ManifestError, match="not what the lock says"):
        load(copy, cache=cache, tokens=PAGE)
    (copy / LOCK).unlink()
    record = json.loads(text)
    (copy / SAMPLING).write_text(json.dumps(record | {"report": "logits"}))
    with pytest.raises(ManifestError, match="`report` names a buffer"):
        load(copy, cache=cache, tokens=PAGE, checkpoint=package.lock.checkpoint)


def test_the_reference_reader_accepts_what_it_knows_of_it(package, reference):
    """Its release has no fills for settings yet: without them it accepts the rest."""
    text = (package.path / MANIFEST).read_text()
    refused = reference.ask(text)
    assert not refused.accepted
    assert "unknown variant" in refused.messages[0]
    with load(package.path, device="null") as session:
        manifest = session.manifest
    buffers = {
        name: replace(b, fill=None) if b.fill in SETTINGS else b
        for name, b in manifest.buffers.items()
    }
    answer = reference.ask(serialize(replace(manifest, buffers=buffers)))
    assert answer.accepted, answer.messages


@pytest.mark.slow
def test_a_run_is_drawn_and_tells_its_seed(checkpoint, plain, package, cache):
    def told(*options: str, of: str = str(checkpoint)) -> dict:
        run = ["run", of, "--raw", "--prompt", "abc", "--max-tokens", "12", "--json"]
        ended = run_cli([*run, *options], cache)
        assert ended.code == 0, ended.err
        return json.loads(ended.out)

    greedy = told()
    assert greedy["seed"] is None
    drawn = told("--temperature", "1.5")
    again = told("--temperature", "1.5", "--seed", str(drawn["seed"]), of=str(package.path))
    assert again["tokens"] == drawn["tokens"] != greedy["tokens"]
    penalised = told("--repetition-penalty", "3")
    assert penalised["seed"] is None
    assert penalised["tokens"] != greedy["tokens"]
    options = ["--top-k", "3", "--seed", "4"]
    prompts = ["--prompt", "abc", "--prompt", "Zq"]
    both = run_cli(["run", str(package.path), "--raw", *prompts, *options, "--json"], cache)
    one = run_cli(["run", str(package.path), "--raw", *prompts[:2], *options, "--json"], cache)
    told_both = json.loads(both.out)
    assert told_both["answers"][0]["tokens"] == json.loads(one.out)["tokens"]
    assert told_both["seed"] == 4
    ended = run_cli(["run", str(plain.path), "--prompt", "a", "--top-p", "0.5"], cache)
    ended.require_one_line("takes the likeliest tokens", "--sampler")
    out = checkpoint.parent / "compiled"
    ended = run_cli(["compile", str(checkpoint), "-o", str(out), "--sampler", "--json"], cache)
    assert json.loads(ended.out)["sampler"] is True
    record = json.loads((out / SAMPLING).read_text())
    assert run_cli(["verify", str(out)], cache).code == 0
    (out / SAMPLING).write_text(json.dumps(record | {"report": "allowed"}))
    ended = run_cli(["verify", str(out)], cache)
    assert ended.code == 1
    assert "`report` names `allowed`" in ended.out


@pytest.mark.slow
def test_smollm2_says_the_same_with_a_sampler(tmp_path, cache):
    texts = []
    for sampler in (False, True):
        out = tmp_path / f"sampler-{sampler}"
        package = compiled(REFERENCE, out, cache, context=128, sampler=sampler)
        with load(package.path, cache=cache) as session:
            sequence = Fed(session, (0, 1, 2, 3))
            logits = sequence.feed([1, 4093, 198, 504])
            texts.append((logits.tobytes(), list(session.generate([1, 4093, 198, 504], 24))))
            if sampler:
                sampling = replace(SAMPLINGS[1], repetition=1.2)
                said = list(session.generate([1, 4093, 198, 504], 8, (), sampling))
                assert said == by_model(session, [1, 4093, 198, 504], sampling, 8)
    assert texts[0] == texts[1]
