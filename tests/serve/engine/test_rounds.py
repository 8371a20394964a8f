"""Speculative rounds, and every other shape of call, served: the gates that a server must pass."""

import numpy as np
import pytest

from bedstone.errors import CallerError
from bedstone.runtime.cpu.device import CpuDevice
from bedstone.runtime.generate import Generator
from bedstone.runtime.load import load
from bedstone.serve.engine.options import DEFAULTS, Options
from bedstone.serve.engine.rounds import answer_of
from bedstone.serve.engine.sequence import Sequence
from bedstone.serve.requests import Request, Sampling, Token
from calls_toy import BROKEN, SHAPES, Calls, calls_parts, follows
from driven import Driven

PROMPTS = [[5, 11, 2, 40, 7, 1, 31, 8, 3, 9, 21], [1], [9, 9, 31, 8, 3], list(range(1, 30))]
ROUNDS = [name for name, calls in SHAPES.items() if calls.rounds]


@pytest.fixture
def session(tmp_path, cache):
    """Opens a session of a shape, of so many pages; it is closed in the end."""
    opened = []

    def make(calls: Calls, pages: int = 80):
        parts = calls_parts(tmp_path, cache, calls)
        found = load(parts, cache=cache, threads=1, tokens=pages * calls.page, sequences=4)
        opened.append(found)
        return found

    yield make
    for each in opened:
        each.close()


@pytest.fixture
def engine(session):
    """An engine without a thread over a shape."""

    def make(name: str, options: Options = DEFAULTS, pages: int = 80) -> Driven:
        return Driven(session(SHAPES[name], pages), options)

    return make


def expected(name: str, prompt: list[int], count: int) -> list[int]:
    return follows(prompt, count, folded=SHAPES[name].folded)


def until_over(served: Driven, name: str) -> None:
    for _ in range(1000):
        if name in served.ends:
            return
        served.turn()
    raise AssertionError(name)


@pytest.mark.parametrize("ahead", [1, 4])
@pytest.mark.parametrize("name", SHAPES)
def test_concurrent_requests_are_answered_as_each_alone(engine, name, ahead, monkeypatch):
    monkeypatch.setattr(CpuDevice, "ahead", ahead)
    served = engine(name)
    for index, prompt in enumerate(PROMPTS):
        served.submit(f"r{index}", prompt, 3 + 5 * index)
    served.finish()
    for index, prompt in enumerate(PROMPTS):
        assert served.tokens[f"r{index}"] == expected(name, prompt, 3 + 5 * index)
        assert served.ends[f"r{index}"].reason == "length"
    assert served.core.stats().pages_held == 0


@pytest.mark.parametrize("name", SHAPES)
def test_one_request_is_answered_as_by_a_single_caller(engine, session, name):
    alone = list(Generator(session(SHAPES[name])).generate(PROMPTS[0], 20))
    served = engine(name)
    served.submit("a", PROMPTS[0], 20)
    served.finish()
    assert served.tokens["a"] == alone


@pytest.mark.parametrize("name", ROUNDS)
def test_rows_of_one_say_the_same_as_rounds(engine, name):
    rounds, plain = engine(name), engine(name, Options(rows=1)) if SHAPES[name].steps else None
    for served in filter(None, (rounds, plain)):
        for index, prompt in enumerate(PROMPTS):
            served.submit(f"r{index}", prompt, 20)
        served.finish()
    stats = rounds.core.stats()
    assert stats.rounds > 0
    assert stats.steps < 60
    if plain is not None:
        assert plain.tokens == rounds.tokens
        assert (plain.core.stats().rounds, plain.core.stats().accepted) == (0, ())


@pytest.mark.parametrize("name", ROUNDS)
def test_what_is_accepted_is_counted_for_each_place(engine, name):
    served, rows = engine(name), SHAPES[name].rows
    served.submit("b", PROMPTS[3], 25)
    counts = []
    while served.core.busy:
        before = served.core.stats().rounds
        told = sum(isinstance(event, Token) for event in served.turn())
        counts += [told] * (served.core.stats().rounds - before)
    stats = served.core.stats()
    places = [sum(count > place for count in counts[:-1]) for place in range(1, rows)]
    assert stats.rounds == len(counts)
    assert stats.drafted == len(counts) * (rows - 1)
    # the last round may have had more than was wanted
    assert all(a <= b <= a + 1 for a, b in zip(places, stats.accepted, strict=True))
    assert 0 < stats.accepted[-1] < stats.accepted[0] < len(counts)


@pytest.mark.parametrize("ahead", [1, 4])
@pytest.mark.parametrize("name", SHAPES)
def test_a_stop_token_ends_an_answer_wherever_it_stands(engine, name, ahead, monkeypatch):
    """It is not told, nor what a round made after it; what is kept is the state of what was."""
    monkeypatch.setattr(CpuDevice, "ahead", ahead)
    served = engine(name)
    whole = expected(name, PROMPTS[0], 20)
    served.submit("beside", PROMPTS[3], 20)
    for at, stop in enumerate(whole[:12]):
        answer = whole[: whole.index(stop)]
        again = [*PROMPTS[0], *answer, stop, 3]
        served.submit(f"a{at}", PROMPTS[0], 20, stop_ids={stop, 96})
        until_over(served, f"a{at}")
        assert served.tokens[f"a{at}"] == answer
        assert served.ends[f"a{at}"].reason == "stop"
        assert served.ends[f"a{at}"].made == len(answer)
        for turn in ("again", "more"):
            served.submit(f"{turn}{at}", again, 4)
            until_over(served, f"{turn}{at}")
            assert served.tokens[f"{turn}{at}"] == expected(name, again, 4)
    served.finish()
    assert served.tokens["beside"] == expected(name, PROMPTS[3], 20)


@pytest.mark.parametrize("name", SHAPES)
def test_the_length_ends_an_answer_inside_a_round(engine, name):
    served = engine(name)
    for count in range(1, 10):
        served.submit(str(count), PROMPTS[0], count)
        served.finish()
        assert served.tokens[str(count)] == expected(name, PROMPTS[0], count)
        end = served.ends[str(count)]
        assert (end.reason, end.made) == ("length", count)


@pytest.mark.parametrize("name", SHAPES)
def test_what_was_computed_is_found_again(engine, name):
    """The same prompt, and a second turn; warm they are answered as cold."""
    served = engine(name)
    unit, prompt = SHAPES[name].page, PROMPTS[3]
    for again in ("cold", "warm"):
        served.submit(again, prompt, 9)
        served.finish()
        assert served.tokens[again] == expected(name, prompt, 9)
    kept = len(prompt) - 1 if SHAPES[name].folded else (len(prompt) - 1) // unit * unit
    assert served.ends["cold"].cached == 0
    assert served.ends["warm"].cached == kept
    second = [*prompt, *served.tokens["cold"], 4, 4]
    served.submit("second", second, 8)
    served.finish()
    assert served.tokens["second"] == expected(name, second, 8)
    assert served.ends["second"].cached >= kept


@pytest.mark.parametrize("name", [name for name in ROUNDS if SHAPES[name].folded])
def test_a_state_that_ran_past_an_answer_is_not_kept(engine, name):
    """A round that had more than was wanted leaves the state of a longer sequence."""
    found = set()
    for count in range(2, 12):
        served = engine(name)
        served.submit("a", PROMPTS[0], count)
        served.finish()
        second = [*PROMPTS[0], *served.tokens["a"], 4]
        served.submit("b", second, 3)
        served.finish()
        assert served.tokens["b"] == expected(name, second, 3)
        # all but the last token of the answer, or the prompt but for its last
        assert served.ends["b"].cached in {len(PROMPTS[0]) + count - 1, len(PROMPTS[0]) - 1}
        found.add(served.ends["b"].cached == len(PROMPTS[0]) - 1)
    assert found == {True, False}


@pytest.mark.parametrize("ahead", [1, 4])
@pytest.mark.parametrize("name", SHAPES)
def test_who_is_cancelled_holds_nothing(engine, name, ahead, monkeypatch):
    monkeypatch.setattr(CpuDevice, "ahead", ahead)
    served = engine(name, Options(chunk=4))
    for index in range(4):
        served.submit(f"r{index}", PROMPTS[index], 25)
    for turn in range(12):
        served.turn()
        if turn in {1, 5}:
            served.core.cancel(f"r{turn // 2 + 1}")
    served.finish()
    for index in range(4):
        made = served.tokens[f"r{index}"]
        reason = served.ends[f"r{index}"].reason
        assert made == expected(name, PROMPTS[index], 25)[: len(made)]
        assert (reason == "length") == (len(made) == 25)
    assert {served.ends[name].reason for name in ("r1", "r3")} <= {"cancelled", "length"}
    assert served.core.stats().pages_held == 0


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_in_the_way_goes_to_the_host_and_comes_back(engine, name):
    page = SHAPES[name].page
    served = engine(name, Options(host_bytes=2**22), pages=-(-44 // page) + 2)
    for index in range(3):
        served.submit(f"r{index}", [index + 1, *PROMPTS[3]], 4)
        served.finish()
    stats = served.core.stats()
    assert stats.parked > 0
    served.submit("again", [1, *PROMPTS[3]], 4)
    served.finish()
    least = 29 if SHAPES[name].folded else 29 // page * page
    assert served.ends["again"].cached == least
    assert served.tokens["again"] == expected(name, [1, *PROMPTS[3]], 4)


@pytest.mark.parametrize("options", [{}, {"admission": "worst"}, {"reuse": False}], ids=str)
@pytest.mark.parametrize("name", SHAPES)
def test_requests_fill_the_context_and_give_way(engine, name, options):
    """As long as one can be, in a pool that holds little more: who gives way loses no token."""
    calls = SHAPES[name]
    served = engine(name, Options(**options), pages=calls.width + 2)
    context = served.core.limits.context
    assert context == calls.page * calls.width - (calls.rows - 1 if calls.rounds else 0)
    for index, count in enumerate((context - 1, context // 2, 1)):
        served.submit(str(index), [1 + index] * (context - count), count)
    served.finish()
    for index, count in enumerate((context - 1, context // 2, 1)):
        prompt = [1 + index] * (context - count)
        assert served.tokens[str(index)] == expected(name, prompt, count)
    assert served.core.stats().pages_held == 0


@pytest.mark.parametrize("name", SHAPES)
def test_one_whose_logits_are_not_finite_fails_alone(engine, name):
    served = engine(name)
    for index, prompt in enumerate(PROMPTS[:3]):
        served.submit(f"r{index}", prompt, 25)
    served.submit("broken", [3, 4, BROKEN], 25)
    served.finish()
    assert served.ends["broken"].reason == "error"
    assert "set `error` to 1" in served.ends["broken"].message
    for index, prompt in enumerate(PROMPTS[:3]):
        assert served.tokens[f"r{index}"] == expected(name, prompt, 25)
    assert served.core.stats().pages_held == 0


@pytest.mark.parametrize("name", ["drawn", "drawn-by-rows"])
def test_rounds_that_know_no_temperature_are_left_to_those_without(engine, name):
    served = engine(name)
    served.submit("cold", PROMPTS[0], 50)
    for _ in range(6):
        served.turn()
    rounds = served.core.stats().rounds
    served.submit("hot", PROMPTS[2], 8, sampling=Sampling(temperature=1.0))
    until_over(served, "hot")
    assert len(served.tokens["cold"]) < 40
    between = served.core._rounds.played
    served.finish()
    assert served.tokens["cold"] == follows(PROMPTS[0], 50)
    assert served.tokens["hot"] == follows(PROMPTS[2], 8, hot=True)
    if SHAPES[name].rounds:
        assert 0 < rounds <= between < served.core.stats().rounds


def test_rows_that_need_the_host_between_their_tokens_go_in_one_at_a_time(engine):
    served = engine("spec")
    served.submit("a", PROMPTS[0], 30)
    while not served.core.stats().rounds:
        served.turn()
    rounds, steps = served.core._rounds.played, served.core._steps
    served.core._rows.slow += 1
    served.turn()
    assert (served.core._rounds.played, served.core._steps) == (rounds, steps + 1)
    served.core._rows.slow -= 1
    served.finish()
    assert served.tokens["a"] == follows(PROMPTS[0], 30)


@pytest.mark.parametrize("end", range(12, 20))
@pytest.mark.parametrize("stop", [*range(1, 6), None])
def test_an_answer_takes_what_comes_before_its_end(end, stop):
    """A stop token behind the last token that was wanted is none of its business."""
    sequence = Sequence.of(
        Request("a", [0] * 11, end - 11, stop_ids=[] if stop is None else [stop]), 0
    )
    answer = answer_of(sequence, [1, 2, 3, 4, 5])
    whole = [1, 2, 3, 4, 5][: end - 11]
    stopped = stop in whole
    expected = tuple(whole[: whole.index(stop)] if stopped else whole)
    assert answer.tokens == expected
    assert answer.counted == len(expected) + stopped
    assert answer.last == answer.counted
    assert answer.past == (answer.counted < 5)
    full = len(expected) == end - 11
    assert answer.reason == ("stop" if stopped else "length" if full else None)


def test_rounds_alone_that_know_no_temperature_refuse_one(engine):
    served = engine("rounds-alone")
    with pytest.raises(CallerError, match="`temperature` needs a sampler"):
        served.submit("hot", PROMPTS[2], 8, sampling=Sampling(temperature=1.0))


@pytest.mark.parametrize("ahead", [1, 3])
@pytest.mark.parametrize("name", SHAPES)
def test_requests_come_and_go_and_the_answers_stay(engine, name, ahead, monkeypatch):
    monkeypatch.setattr(CpuDevice, "ahead", ahead)
    random, page = np.random.default_rng(7), SHAPES[name].page
    options = Options(chunk=6, budget=12, host_bytes=2**18)
    served = engine(name, options, pages=-(-70 // page) + 2)
    answers, cancelled = {}, set()
    for index in range(40):
        key, count = f"r{index}", int(random.integers(1, 20))
        prompt = [int(t) for t in random.integers(0, 4, int(random.integers(1, 30)))]
        whole = expected(name, prompt, count)
        stops = {whole[int(random.integers(0, count))]} if random.random() < 0.4 else set()
        end = min((whole.index(stop) for stop in stops), default=count)
        answers[key] = whole[:end]
        served.submit(key, prompt, count, stop_ids=stops)
        for _ in range(int(random.integers(0, 4))):
            served.turn()
        if random.random() < 0.2:
            victim = f"r{random.integers(0, index + 1)}"
            cancelled.add(victim)
            served.core.cancel(victim)
    served.finish()
    for key, tokens in answers.items():
        made = served.tokens[key]
        assert made == tokens[: len(made)]
        assert served.ends[key].reason in {"length", "stop"} or key in cancelled
        assert made == tokens or key in cancelled
    stats = served.core.stats()
    assert (stats.pages_held, stats.running, stats.waiting) == (0, 0, 0)
    assert stats.made_tokens == sum(map(len, served.tokens.values()))


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("many-prompts", [3]),
        ("paged", [1, 1, 1]),
        ("no-chunk", [3] * 4),
        ("drawn-by-rows", [3] * 4),
    ],
)
def test_prompts_share_calls(engine, name, calls, monkeypatch):
    """As many as a program takes; where none is for prompts, a token of each goes in at a time."""
    served, shared = engine(name, Options(chunk=5, budget=64)), []
    start = served.core._piece_calls.start

    def watched(shape, pieces):
        shared.append(len(pieces))
        return start(shape, pieces)

    monkeypatch.setattr(served.core._piece_calls, "start", watched)
    prompts = [[index, 5, 6, 7, 4] for index in range(3)]
    for index, prompt in enumerate(prompts):
        served.submit(str(index), prompt, 6)
    served.finish()
    assert shared[: len(calls)] == calls
    assert all(served.tokens[str(at)] == expected(name, each, 6) for at, each in enumerate(prompts))
