"""One sequence, and several in lock step, over every shape of call that the protocol knows."""

import pytest

from bedstone.errors import CallerError, WeightError
from bedstone.runtime.generate import Generator
from bedstone.runtime.load import load
from bedstone.runtime.together import Together
from calls_toy import BROKEN, SHAPES, Calls, calls_parts, follows

PROMPTS = [[5, 11, 2, 40, 7, 1, 31, 8, 3, 9, 21], [1], [9, 9, 31, 8, 3], [4, 4]]
PROMPT = PROMPTS[0]
ROUNDS = [name for name, calls in SHAPES.items() if calls.rounds]


@pytest.fixture
def opened(tmp_path, cache):
    """Opens a session of a shape; it is closed in the end."""
    sessions = []

    def make(calls: Calls, tokens: int = 256):
        parts = calls_parts(tmp_path, cache, calls)
        sessions.append(load(parts, cache=cache, threads=1, tokens=tokens, sequences=4))
        return sessions[-1]

    yield make
    for session in sessions:
        session.close()


def counted(session, monkeypatch):
    """The programs that are started from now on."""
    started, start = [], session.start

    def watched(program, *given, **named):
        started.append(program)
        return start(program, *given, **named)

    monkeypatch.setattr(session, "start", watched)
    return started


@pytest.mark.parametrize("name", SHAPES)
def test_a_prompt_is_answered_as_the_model_says(opened, name):
    calls = SHAPES[name]
    generator = Generator(opened(calls))
    made = list(generator.generate(PROMPT, 24))
    assert made == follows(PROMPT, 24, folded=calls.folded)
    assert generator.finish == "length"


@pytest.mark.parametrize("name", ROUNDS)
def test_a_round_gives_several_tokens_and_the_same_as_rows_of_one(opened, name, monkeypatch):
    session = opened(SHAPES[name])
    started = counted(session, monkeypatch)
    found = list(Generator(session).generate(PROMPT, 30))
    rounds = sum(program.startswith(f"step.{SHAPES[name].rows}.") for program in started)
    assert 7 <= rounds < 25
    if SHAPES[name].steps or SHAPES[name].emits:
        started.clear()
        assert list(Generator(session, rows=1).generate(PROMPT, 30)) == found
        assert not any(program.startswith(f"step.{SHAPES[name].rows}.") for program in started)


@pytest.mark.parametrize("name", SHAPES)
def test_several_are_answered_as_each_alone(opened, name):
    calls = SHAPES[name]
    together = Together(opened(calls, tokens=512), 4)
    made = [[] for _ in PROMPTS]
    for index, token in together.generate(PROMPTS, 20):
        made[index].append(token)
    assert made == [follows(prompt, 20, folded=calls.folded) for prompt in PROMPTS]
    assert together.finish == ["length"] * 4


@pytest.mark.parametrize("name", SHAPES)
def test_fewer_than_a_step_takes_leave_the_others_pages_alone(opened, name):
    calls = SHAPES[name]
    expected = [follows(prompt, 20, folded=calls.folded) for prompt in PROMPTS[:3]]
    stop = expected[1][3]
    together = Together(opened(calls, tokens=512), 3)
    made = [[], [], []]
    for index, token in together.generate(PROMPTS[:3], 20, {stop}):
        made[index].append(token)
    for got, whole in zip(made, expected, strict=True):
        assert got == (whole[: whole.index(stop)] if stop in whole else whole)
    assert together.finish[1] == "stop"


@pytest.mark.parametrize("name", ROUNDS)
def test_a_stop_token_anywhere_in_a_round_ends_an_answer(opened, name):
    calls = SHAPES[name]
    generator = Generator(opened(calls))
    expected = follows(PROMPT, 20, folded=calls.folded)
    for stop in expected[1:]:
        generator.reset()
        made = list(generator.generate(PROMPT, 20, {stop}))
        assert made == expected[: expected.index(stop)]
        assert generator.finish == "stop"
        assert generator.length == len(PROMPT) + len(made)


@pytest.mark.parametrize("name", [*ROUNDS, "paged", "stateful"])
def test_a_second_prompt_goes_on_from_the_first(opened, name):
    """What a round gave past the answer is written over.

    Where states are of one length, fewer tokens than a round has rows go in one at a time.
    """
    folded = SHAPES[name].folded
    generator = Generator(opened(SHAPES[name]))
    for count in range(1, 9) if not folded or SHAPES[name].steps else ():
        generator.reset()
        history = [*PROMPT, *generator.generate(PROMPT, count)]
        assert generator.length == len(history) - 1
        expected = follows([*history, 4, 4], 1, folded=folded)[0]
        assert generator.prefill([history[-1], 4, 4]) == expected


def test_states_past_what_was_taken_are_not_gone_on_from(opened):
    generator = Generator(opened(SHAPES["rounds-alone-stateful"]))
    prompt = PROMPT
    while not generator.ready:
        generator.reset()
        prompt = [*prompt[1:], prompt[0]]
        generator.prefill(prompt)
    with pytest.raises(CallerError, match="tokens past those that were taken: begin anew"):
        generator.prefill([1])
    generator.reset()
    assert generator.prefill([1, 2]) == follows([1, 2], 1, folded=True)[0]


@pytest.mark.parametrize("name", ROUNDS)
def test_single_steps_take_the_tokens_of_rounds_one_by_one(opened, name):
    calls = SHAPES[name]
    generator = Generator(opened(calls))
    made = [generator.prefill(PROMPT), generator.step(), *generator.advance(5), generator.step()]
    assert made == follows(PROMPT, 8, folded=calls.folded)
    assert generator.length == len(PROMPT) + 7


@pytest.mark.parametrize("name", ["spec", "rounds-alone", "stateful-spec", "odd-pages"])
def test_an_answer_fills_the_context(opened, name):
    """The last rows of it one at a time; without a program for that, a round's rows short of it."""
    calls = SHAPES[name]
    generator = Generator(opened(calls))
    room = calls.page * calls.width
    short = 0 if calls.steps else calls.rows - 1
    assert (generator.room, generator.limit) == (room, room - short)
    made = list(generator.generate(PROMPT, 1000))
    expected = follows(PROMPT, room - short - len(PROMPT) + 1, folded=calls.folded)
    assert made == expected


def test_rounds_of_so_many_rows_there_are_not(opened):
    session = opened(SHAPES["spec"])
    with pytest.raises(
        CallerError, match=r"`rows` is 3: expected 1, or those of a round; there are 4"
    ):
        Generator(session, rows=3)
    with pytest.raises(CallerError, match=r"`rows` is 2: .* there are none"):
        Together(opened(SHAPES["paged"]), 2, rows=2)


@pytest.mark.parametrize("name", ["spec", "paged", "chained", "untold"])
def test_logits_that_are_not_finite_fail_a_round_too(opened, name):
    generator = Generator(opened(SHAPES[name]))
    with pytest.raises(WeightError, match="set `error` to 1"):
        list(generator.generate([3, BROKEN, 4], 6))
