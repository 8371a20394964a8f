"""Tokens drawn as each request asks, by real kernels: alone and together."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from bedstone.errors import CallerError
from bedstone.runtime.load import load
from bedstone.serve.engine.options import Options
from bedstone.serve.requests import Sampling, Token
from driven import Driven
from letters import write_tokenizer
from packages import PAGE, Fed, compiled
from tiny_models import IDS, LONG, write_tiny

MANY = 4
VOCAB = 61
PROMPTS = (LONG[:7], LONG[3:5], LONG[:30], LONG[:30], IDS, LONG[:40])
SAMPLINGS = (
    Sampling(0.7, top_k=9, top_p=0.9, min_p=0.01, seed=-3),
    Sampling(1.0, seed=5, repetition=1.3, presence=0.5, frequency=0.25, bias={4: 1.0, 7: -2.5}),
    Sampling(),
    Sampling(1.3, top_p=0.8, seed=2**64 - 1),
    Sampling(repetition=1.7),
    Sampling(0.9, seed=4),
)


@pytest.fixture(scope="module", params=["llama-biases", "qwen3-next"])
def packages(request, tmp_path_factory, cache):
    """A package with a sampler, and one without."""
    folder = tmp_path_factory.mktemp(request.param)
    write_tiny(request.param, folder / "checkpoint")
    write_tokenizer(folder / "checkpoint")
    return [
        compiled(
            str(folder / "checkpoint"),
            folder / name,
            cache,
            sequences=MANY,
            sampler=name == "sampler",
        ).path
        for name in ("sampler", "plain")
    ]


@pytest.fixture
def session(packages, cache):
    with load(packages[0], cache=cache, tokens=12 * PAGE, sequences=MANY, threads=2) as opened:
        yield opened


def test_d10_each_says_together_what_it_says_alone(session):
    """Drawn or not, with edits or without: whoever else there is, and whatever was cached."""
    alone = [
        list(session.generate(prompt, 14, (), sampling))
        for prompt, sampling in zip(PROMPTS, SAMPLINGS, strict=True)
    ]
    for reuse in (False, True):
        engine = Driven(session, Options(reuse=reuse, chunk=8))
        for turn in range(2):
            for index in np.random.default_rng(turn).permutation(len(PROMPTS)):
                engine.submit(f"{turn}.{index}", PROMPTS[index], 14, sampling=SAMPLINGS[index])
            engine.finish()
            for index, expected in enumerate(alone):
                assert engine.tokens[f"{turn}.{index}"] == expected, (reuse, turn, index)
        cached = [engine.ends[f"1.{index}"].cached for index in range(len(PROMPTS))]
        assert any(cached) == reuse


def test_d07_who_gives_way_draws_the_same(packages, cache):
    with load(packages[0], cache=cache, tokens=3 * PAGE, sequences=MANY) as session:
        prompts = [LONG[:20], LONG[1:25], LONG[2:28]]
        alone = [
            list(session.generate(prompt, 25, (), sampling))
            for prompt, sampling in zip(prompts, SAMPLINGS[:3], strict=True)
        ]
        engine = Driven(session, Options())
        for index, prompt in enumerate(prompts):
            engine.submit(str(index), prompt, 25, sampling=SAMPLINGS[index])
        engine.finish()
        assert [engine.tokens[str(index)] for index in range(3)] == alone
        assert engine.core.stats().preempted > 0


def test_edits_stay_with_those_that_go_on(session):
    """Whoever of the rows ends first, the last of them too, and whoever takes its place."""
    edited = [replace(SAMPLINGS[1], seed=seed) for seed in range(5)]
    counts = (14, 11, 8, 5, 9)
    alone = [
        list(session.generate(LONG[at : at + 6], count, (), sampling))
        for at, (sampling, count) in enumerate(zip(edited, counts, strict=True))
    ]
    for order in ((0, 1, 2, 3, 4), (3, 2, 1, 0, 4), (1, 3, 0, 2, 4)):
        engine = Driven(session, Options(reuse=False))
        for at in order:
            prompt = LONG[at : at + 6]
            engine.submit(str(at), prompt, counts[at], sampling=edited[at])
        engine.finish()
        assert [engine.tokens[str(at)] for at in range(5)] == alone, order


def test_log_probabilities_stay_with_their_tokens_where_another_stops(session):
    asks = Sampling(logprobs=2)

    def told(*others):
        engine = Driven(session, Options(reuse=False))
        for name, prompt, stops in (*others, ("asks", IDS, ())):
            engine.submit(name, prompt, 9, sampling=asks, stop_ids=stops)
        engine.finish()
        events = [e for e in engine.events if isinstance(e, Token) and e.request == "asks"]
        return [(e.token, e.logprob, e.top) for e in events], engine.ends

    alone, _ = told()
    said = list(session.generate(LONG[:9], 9))
    stop = next(token for at, token in enumerate(said) if at > 2 and token not in said[:at])
    together, ends = told(("stops", LONG[:9], {stop}))
    assert together == alone
    assert (ends["stops"].reason, ends["stops"].made) == ("stop", said.index(stop))


def test_log_probabilities_are_of_the_models_own_logits(session):
    sampling = Sampling(1.0, seed=9, presence=1.5, logprobs=3)
    engine = Driven(session, Options())
    engine.submit("asks", IDS, 9, sampling=sampling)
    engine.submit("plain", LONG[:9], 9)
    engine.submit("one", IDS, 9, sampling=Sampling(1.0, seed=9, presence=1.5, logprobs=0))
    engine.finish()
    fed = Fed(session, (0, 1))
    logits = fed.feed(IDS)
    for event in (e for e in engine.events if isinstance(e, Token) and e.request == "asks"):
        wide = logits.astype(np.float64)
        logprobs = wide - np.log(np.exp(wide - wide.max()).sum()) - wide.max()
        assert event.logprob == pytest.approx(logprobs[event.token], abs=1e-4)
        best = np.argsort(-logprobs, kind="stable")[:3]
        assert [token for token, _ in event.top] == best.tolist()
        assert [value for _, value in event.top] == pytest.approx(logprobs[best], abs=1e-4)
        logits = fed.feed([event.token], "decode")
    plain = [e for e in engine.events if isinstance(e, Token) and e.request == "plain"]
    assert {(e.logprob, e.top) for e in plain} == {(None, ())}
    one = [e for e in engine.events if isinstance(e, Token) and e.request == "one"]
    assert all(e.top == () and e.logprob is not None for e in one)
    assert engine.tokens["one"] == engine.tokens["asks"]


class Ladder:
    """Tokens must rise by one to three; nothing follows the last rung."""

    def __init__(self, top: int, fails_at: int | None = None) -> None:
        self.at, self.top, self.fails_at, self.asked = 0, top, fails_at, 0

    def allowed(self):
        self.asked += 1
        if self.asked == self.fails_at:
            raise RuntimeError("no rung")
        bits = np.zeros(-(-VOCAB // 32), np.uint32)
        for token in range(self.at + 1, min(self.at + 4, self.top + 1)):
            bits[token // 32] |= np.uint32(1 << token % 32)
        return bits

    def accept(self, token):
        self.at = token
        return token < self.top


def test_a_constraint_leaves_only_what_it_allows(session):
    engine = Driven(session, Options(chunk=4))
    for index, prompt in enumerate(PROMPTS[:4]):
        drawn = Sampling(1.5, seed=index)
        engine.submit(f"up{index}", prompt, 34, sampling=drawn, constraint=Ladder(30))
        engine.submit(f"free{index}", prompt, 9, sampling=SAMPLINGS[index])
    engine.submit("fails", IDS, 40, constraint=Ladder(30, fails_at=4))
    engine.submit("cut", IDS, 3, constraint=Ladder(30))
    engine.finish()
    for index in range(4):
        rungs = [0, *engine.tokens[f"up{index}"]]
        assert all(1 <= after - before <= 3 for before, after in pairwise(rungs))
        assert rungs[-1] == 30
        assert engine.ends[f"up{index}"].reason == "stop"
    assert engine.ends["fails"].reason == "error"
    assert engine.ends["fails"].message == "its constraint failed: no rung"
    assert (len(engine.tokens["fails"]), engine.ends["cut"].reason) == (3, "length")
    for index in range(4):
        expected = list(session.generate(PROMPTS[index], 9, (), SAMPLINGS[index]))
        assert engine.tokens[f"free{index}"] == expected


@pytest.mark.parametrize(
    ("sampling", "message"),
    [
        (Sampling(float("nan")), "`temperature` is nan, expected a finite number"),
        (Sampling(-1.0), "`temperature` is -1.0, expected 0 at least"),
        (Sampling(1.0, top_p=1.5), "`top_p` is 1.5, expected 0 to 1"),
        (Sampling(repetition=0.0), "`repetition` is 0.0, expected more than 0"),
        (Sampling(logprobs=21), "`logprobs` is 21, expected 0 to 20"),
        (Sampling(bias={VOCAB: 1.0}), "`bias` is {61: 1.0}, expected tokens there are"),
        (Sampling(bias={1: float("inf")}), "`bias of 1` is inf, expected a finite number"),
    ],
)
def test_what_cannot_be_drawn_is_refused(session, sampling, message):
    engine = Driven(session, Options())
    with pytest.raises(CallerError, match=message):
        engine.submit("a", IDS, 3, sampling=sampling)
    assert not engine.core.busy


def test_without_a_sampler_what_is_missing_is_named(packages, cache):
    with load(packages[1], cache=cache, tokens=8 * PAGE, sequences=MANY) as session:
        engine = Driven(session, Options())
        assert engine.core.limits.missing == (
            *("temperature", "top_k", "top_p", "min_p"),
            *("repetition", "presence", "frequency", "bias", "logprobs", "constraint"),
        )
        for sampling, missing in (
            (Sampling(0.5), "temperature"),
            (Sampling(presence=0.1), "presence"),
            (Sampling(logprobs=0), "logprobs"),
            (Sampling(bias={1: 1.0}), "bias"),
        ):
            with pytest.raises(CallerError, match=f"`{missing}` needs a sampler"):
                engine.submit("a", IDS, 3, sampling=sampling)
        with pytest.raises(CallerError, match="`constraint` needs a sampler"):
            engine.submit("a", IDS, 3, constraint=Ladder(5))
        engine.submit("a", IDS, 9, sampling=Sampling(0.0, top_k=4, top_p=0.1, seed=7))
        engine.finish()
        assert engine.tokens["a"] == list(session.generate(IDS, 9))
