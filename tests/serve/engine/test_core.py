"""Requests of a model whose answers are known: alone, together, under every kind of shortage."""

import numpy as np
import pytest

from bedstone.errors import CallerError
from bedstone.runtime.cpu.device import CpuDevice
from bedstone.serve.engine.options import Options
from bedstone.serve.requests import Finished, Token
from served_toy import BROKEN, answers

PROMPTS = [[5, 11, 2, 40, 7], [1], [9, 9, 31, 8, 3, 77, 21, 4, 50, 60, 2, 1], list(range(1, 30))]
SHAPES = [
    {},
    {"told": False},
    {"emits": False},
    {"pieces": False},
    {"folded": True},
    {"folded": True, "told": False},
    {"page": 64, "width": 1},
]


def test_one_request(core):
    engine = core()
    engine.submit("a", PROMPTS[0], 6)
    engine.finish()
    assert engine.tokens["a"] == answers(PROMPTS[0], 6)
    end = engine.ends["a"]
    assert (end.reason, end.prompt, end.cached, end.made) == ("length", 5, 0, 6)


@pytest.mark.parametrize("ahead", [1, 4])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_several_requests_are_answered_as_each_alone(core, shape, ahead, monkeypatch):
    monkeypatch.setattr(CpuDevice, "ahead", ahead)
    engine = core(**shape)
    for index, prompt in enumerate(PROMPTS):
        engine.submit(f"r{index}", prompt, 3 + 5 * index)
    engine.finish()
    for index, prompt in enumerate(PROMPTS):
        folded = bool(shape.get("folded"))
        assert engine.tokens[f"r{index}"] == answers(prompt, 3 + 5 * index, folded=folded)
    assert engine.core.stats().pages_held == 0


@pytest.mark.parametrize("ahead", [1, 4])
@pytest.mark.parametrize("folded", [False, True])
def test_a_stop_token_ends_an_answer_and_is_not_told(core, ahead, folded, monkeypatch):
    monkeypatch.setattr(CpuDevice, "ahead", ahead)
    engine = core(folded=folded)
    expected = answers(PROMPTS[0], 20, folded=folded)
    stop = next(token for at, token in enumerate(expected) if at > 2 and token not in expected[:at])
    engine.submit("a", PROMPTS[0], 20, stop_ids={stop, 96})
    engine.submit("b", PROMPTS[1], 20)
    engine.finish()
    assert engine.tokens["a"] == expected[: expected.index(stop)]
    assert engine.ends["a"].reason == "stop"
    assert engine.tokens["b"] == answers(PROMPTS[1], 20, folded=folded)
    # what was kept of it is the state of its tokens, whatever ran on
    engine.submit("again", [*PROMPTS[0], *engine.tokens["a"], stop, 3], 4)
    engine.finish()
    prompt = [*PROMPTS[0], *engine.tokens["a"], stop, 3]
    assert engine.tokens["again"] == answers(prompt, 4, folded=folded)


def test_a_stop_token_that_comes_first_leaves_nothing(core):
    engine = core()
    engine.submit("a", PROMPTS[0], 5, stop_ids=answers(PROMPTS[0], 1))
    engine.finish()
    assert engine.events == [Finished("a", "stop", 5, 0, 0)]


def test_how_long_requests_waited_is_known_of_all_that_began(core):
    engine = core(Options(sequences=1), pages=8, page=4)
    for name in "abc":
        engine.submit(name, PROMPTS[0], 4)
    engine.now = 1.0
    engine.turn()
    engine.now = 3.0
    engine.core.cancel("c")
    engine.finish()
    stats = engine.core.stats()
    assert (stats.begun, stats.waited_seconds) == (2, 4.0)


def test_who_gave_way_waits_ahead_of_those_that_never_began(core):
    engine = core(Options(reuse=False, sequences=3), pages=11, page=4)
    for name in "abcd":
        engine.submit(name, [1 + ord(name) % 7] * 8, 12)
    while not engine.core.stats().preempted:
        engine.turn()
    assert (engine.tokens["c"] != [], engine.tokens["d"]) == (True, [])
    assert [sequence.id for sequence in engine.core._queue._waiting] == ["c", "d"]
    engine.finish()


def test_who_gives_way_began_once(core):
    engine = core(pages=8, page=4)
    for name in "abc":
        engine.submit(name, PROMPTS[0], 12)
    engine.finish()
    stats = engine.core.stats()
    assert stats.preempted > 0
    assert stats.begun == 3


def test_tokens_of_prompts_are_counted_as_they_go_in(core):
    engine = core(Options(chunk=8), page=4, rows=8)
    engine.submit("a", PROMPTS[3], 2)
    engine.turn()
    assert engine.core.stats().fed_tokens == 8
    engine.finish()
    assert engine.core.stats().fed_tokens == len(PROMPTS[3])
    engine.submit("again", PROMPTS[3], 2)
    engine.finish()
    assert engine.core.stats().fed_tokens == len(PROMPTS[3]) + 1


def test_steps_run_ahead_as_far_as_an_answer_reaches(core, monkeypatch):
    monkeypatch.setattr(CpuDevice, "ahead", 4)
    engine = core()
    engine.submit("a", PROMPTS[0], 20)
    most = 0
    while engine.core.busy:
        engine.turn()
        most = max(most, len(engine.core._flights))
    assert most == 3
    assert engine.core.stats().steps == 19


@pytest.fixture
def ahead_of_time(core, monkeypatch):
    """An engine that has a request under way four steps ahead, and what its calls do from then."""
    monkeypatch.setattr(CpuDevice, "ahead", 4)
    engine, order = core(), []
    engine.submit("a", [1, 2], 30)
    while len(engine.core._flights) < 3:
        engine.turn()
    calls, pieces = engine.core._calls, engine.core._piece_calls
    for on, name in ((pieces, "start"), (calls, "step"), (calls, "chain"), (calls, "land")):
        does = getattr(on, name)

        def told(*given, does=does, name=name, **more):
            order.append(name)
            return does(*given, **more)

        monkeypatch.setattr(on, name, told)
    return engine, order


def test_a_prompt_goes_in_behind_the_steps_under_way(ahead_of_time):
    engine, order = ahead_of_time
    engine.submit("b", [3, 4, 5], 4)
    under_way = len(engine.core._flights)
    engine.turn()
    assert order == ["start", *["land"] * under_way, "step", "land", "land"]
    engine.finish()
    assert engine.tokens["a"] == answers([1, 2], 30)
    assert engine.tokens["b"] == answers([3, 4, 5], 4)


def test_steps_follow_one_from_the_host_before_it_is_over(ahead_of_time):
    engine, order = ahead_of_time
    engine.submit("b", [3, 4, 5], 9)
    engine.turn()
    order.clear()
    engine.turn()
    assert order == ["step", "chain", "chain", "chain", "land"]
    # and others follow those for as long as nobody comes or goes
    order.clear()
    engine.turn()
    assert order == ["chain", "land"]
    engine.finish()
    assert engine.tokens["b"] == answers([3, 4, 5], 9)


@pytest.mark.parametrize("ahead", [1, 4])
def test_a_cancelled_request_ends_and_the_others_go_on(core, ahead, monkeypatch):
    monkeypatch.setattr(CpuDevice, "ahead", ahead)
    engine = core()
    for index in range(3):
        engine.submit(f"r{index}", PROMPTS[index], 30)
    for _ in range(6):
        engine.turn()
    engine.core.cancel("r1")
    engine.core.cancel("r1")
    engine.core.cancel("nobody")
    engine.finish()
    assert engine.ends["r1"].reason == "cancelled"
    made = engine.tokens["r1"]
    assert made == answers(PROMPTS[1], len(made))
    assert 0 < len(made) < 30
    for index in (0, 2):
        assert engine.tokens[f"r{index}"] == answers(PROMPTS[index], 30)
    assert engine.core.stats().pages_held == 0


def test_a_deadline_ends_a_request_that_runs_and_one_that_waits(core):
    engine = core(Options(sequences=1))
    engine.submit("runs", PROMPTS[0], 40, deadline=5.0)
    engine.submit("waits", PROMPTS[1], 40, deadline=6.0)
    engine.submit("later", PROMPTS[2], 3)
    for engine.now in (1.0, 2.0, 4.9):
        engine.turn()
    assert not engine.ends
    engine.now = 6.0
    engine.turn()
    assert {name: end.reason for name, end in engine.ends.items()} == {
        "runs": "deadline",
        "waits": "deadline",
    }
    engine.finish()
    assert engine.tokens["later"] == answers(PROMPTS[2], 3)


@pytest.mark.parametrize("folded", [False, True])
def test_one_whose_logits_are_broken_fails_alone(core, folded):
    engine = core(folded=folded)
    for index, prompt in enumerate(PROMPTS[:3]):
        engine.submit(f"r{index}", prompt, 25)
    for _ in range(8):
        engine.turn()
    # a token that breaks a sequence in the middle of its answer
    (victim,) = (s for s in engine.core._rows.sequences if s.id == "r1")
    victim.tokens[-1] = BROKEN
    engine.core._rows.tokens[victim.row] = BROKEN
    engine.core._chain = None
    engine.finish()
    assert engine.ends["r1"].reason == "error"
    message = "logits were not finite: program `piece` set `error` to 1"
    assert engine.ends["r1"].message == message
    for index in (0, 2):
        assert engine.tokens[f"r{index}"] == answers(PROMPTS[index], 25, folded=folded)
    stats = engine.core.stats()
    assert (stats.pages_held, stats.finished["error"]) == (0, 1)


@pytest.mark.parametrize("folded", [False, True])
def test_choices_of_one_prompt_compute_it_once(core, folded):
    prompt = PROMPTS[3]
    engine = core(folded=folded)
    for choice in range(4):
        engine.submit(f"c{choice}", prompt, 5)
    engine.finish()
    assert all(engine.tokens[f"c{c}"] == answers(prompt, 5, folded=folded) for c in range(4))
    cached = 28 if not folded else len(prompt) - 1
    assert [engine.ends[f"c{c}"].cached for c in range(4)] == [0, cached, cached, cached]
    stats = engine.core.stats()
    assert (stats.prompt_tokens, stats.cached_tokens) == (4 * len(prompt), 3 * cached)
    assert (stats.fed_tokens, stats.made_tokens) == (4 * len(prompt) - 3 * cached, 20)


def test_a_second_turn_computes_only_what_is_new(core):
    engine = core()
    engine.submit("one", PROMPTS[3], 9)
    engine.finish()
    second = [*PROMPTS[3], *engine.tokens["one"], 4, 4]
    engine.submit("two", second, 5)
    engine.finish()
    # all that was fed: every token of the first but its last
    assert engine.ends["two"].cached == 37
    assert engine.tokens["two"] == answers(second, 5)


def test_a_prompt_beside_others_is_no_prefix(core):
    engine = core(Options(reuse=False))
    for name in ("one", "two"):
        engine.submit(name, PROMPTS[3], 5)
        engine.finish()
    assert engine.ends["two"].cached == 0
    assert engine.core.stats().pages_cached == 0


@pytest.mark.parametrize("folded", [False, True])
def test_what_is_in_the_way_goes_to_the_host_and_comes_back(core, folded):
    engine = core(Options(host_bytes=2**22), pages=10, sequences=2, folded=folded)
    for index in range(3):
        engine.submit(f"r{index}", [index + 1, *PROMPTS[3]], 4)
        engine.finish()
    stats = engine.core.stats()
    assert stats.parked > 0
    assert stats.evicted >= stats.parked
    assert (stats.woken, stats.slots_held) == (0, 0)
    assert (stats.slots_total > 0) == folded
    assert stats.prefixes > 0
    assert 0 < stats.prefixes_parked <= stats.parked
    assert 0 < stats.host_bytes < 2**22
    engine.submit("again", [1, *PROMPTS[3]], 4)
    engine.finish()
    assert engine.ends["again"].cached >= 28
    assert engine.core.stats().woken == 1
    assert engine.tokens["again"] == answers([1, *PROMPTS[3]], 4, folded=folded)


def test_a_long_prompt_and_short_ones_take_turns(core):
    """A prompt of many pieces neither stops the others' answers nor waits for all of them."""
    engine = core(Options(chunk=4, budget=4, reuse=False), page=8, width=64, pages=128)
    engine.submit("running", [1, 2], 200)
    engine.turn()
    engine.submit("long", list(range(1, 91)) * 4, 3)
    engine.submit("short", [7, 7, 7], 3)
    gaps, last = [], 0
    for turn in range(1, 300):
        events = engine.turn()
        if any(isinstance(e, Token) and e.request == "running" for e in events):
            gaps.append(turn - last)
            last = turn
        if "long" in engine.ends:
            break
    assert max(gaps) == 1
    names = [e.request for e in engine.events if isinstance(e, Token) and e.request != "running"]
    assert names.index("short") < names.index("long")
    assert engine.tokens["long"] == answers(list(range(1, 91)) * 4, 3)


def test_small_requests_pass_a_large_one_and_then_no_more(core):
    engine = core(Options(admission="worst", reuse=False), pages=16)
    engine.submit("holds", [1], 16)
    engine.submit("large", [2], 55)
    for index in range(40):
        engine.submit(f"small{index}", [3 + index], 4)
    engine.finish()
    first = [*dict.fromkeys(e.request for e in engine.events if isinstance(e, Token))]
    assert first.index("large") == 17


def test_one_that_has_no_room_holds_up_neither_steps_nor_who_comes_and_has(core, monkeypatch):
    monkeypatch.setattr(CpuDevice, "ahead", 4)
    engine = core(Options(admission="worst", reuse=False), pages=16)
    engine.submit("holds", [1], 43)
    engine.submit("large", [2], 30)
    for _ in range(6):
        engine.turn()
    assert len(engine.core._flights) == 3
    assert engine.core.stats().waiting == 1
    engine.submit("small", [3], 4)
    for _ in range(2):
        engine.turn()
    assert engine.tokens["small"]
    engine.finish()
    for name, prompt, count in (("holds", [1], 43), ("large", [2], 30), ("small", [3], 4)):
        assert engine.tokens[name] == answers(prompt, count)


@pytest.mark.parametrize(
    ("ahead", "options"),
    [(1, {}), (4, {"host_bytes": 2**18}), (4, {"admission": "worst"}), (3, {"reuse": False})],
    ids=str,
)
def test_rows_go_anywhere_and_the_answers_stay(core, ahead, options, monkeypatch):
    """Requests that come and go at random, of all lengths, over every shape."""
    monkeypatch.setattr(CpuDevice, "ahead", ahead)
    random = np.random.default_rng(5)
    for shape in SHAPES:
        engine = core(Options(chunk=6, budget=12, **options), pages=24, **shape)
        expected, cancelled = {}, set()
        for index in range(60):
            name, count = f"r{index}", int(random.integers(1, 20))
            prompt = [int(t) for t in random.integers(0, 4, int(random.integers(1, 30)))]
            folded = bool(shape.get("folded"))
            expected[name] = answers(prompt, count, folded=folded)
            engine.submit(name, prompt, count)
            for _ in range(int(random.integers(0, 5))):
                engine.turn()
            if random.random() < 0.2:
                victim = f"r{random.integers(0, index + 1)}"
                cancelled.add(victim)
                engine.core.cancel(victim)
        engine.finish()
        assert engine.ends.keys() == expected.keys()
        for name, tokens in expected.items():
            made = engine.tokens[name]
            assert made == tokens[: len(made)]
            assert len(made) == engine.ends[name].made
            assert engine.ends[name].reason == ("length" if made == tokens else "cancelled")
            assert made == tokens or name in cancelled
        stats = engine.core.stats()
        assert (stats.pages_held, stats.running, stats.waiting) == (0, 0, 0)
        assert stats.made_tokens == sum(len(tokens) for tokens in engine.tokens.values())


@pytest.mark.parametrize("ahead", [1, 4])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_requests_may_fill_the_context_and_the_pool(core, shape, ahead, monkeypatch):
    """Each as long as a sequence can be, in a pool that holds one of them."""
    monkeypatch.setattr(CpuDevice, "ahead", ahead)
    pads = not shape.get("told", True)
    engine = core(pages=16 + pads, **shape)
    assert engine.core.limits.context == 64
    folded = bool(shape.get("folded"))
    for index, count in enumerate((63, 34, 1)):
        engine.submit(str(index), [1 + index] * (64 - count), count)
    engine.finish()
    for index, count in enumerate((63, 34, 1)):
        expected = answers([1 + index] * (64 - count), count, folded=folded)
        assert engine.tokens[str(index)] == expected
    stats = engine.core.stats()
    assert (stats.pages_total, stats.pages_held) == (16, 0)


def test_the_pool_bounds_what_may_be_asked(core):
    engine = core(pages=5)
    assert engine.core.limits.context == 20
    engine.submit("a", [1] * 19, 1)
    with pytest.raises(CallerError, match="19 tokens and 2 more are 21, the context holds 20"):
        engine.submit("b", [1] * 19, 2)
    padded = core(pages=5, told=False)
    assert padded.core.limits.context == 16


def test_options_at_their_ends():
    Options(sequences=1, queue=0, chunk=1, budget=1, host_bytes=0)


@pytest.mark.parametrize(
    "options", [{"chunk": 0}, {"budget": 0}, {"queue": -1}, {"sequences": 0}, {"host_bytes": -1}]
)
def test_options_that_cannot_be(options):
    (name,) = options
    with pytest.raises(CallerError, match=f"`{name}` is {options[name]}: expected"):
        Options(**options)
