"""The toy model end to end: prompts in, tokens out, over pages in any order."""

from dataclasses import replace

import numpy as np
import pytest

from bedstone.errors import CallerError, CapacityError, WeightError
from bedstone.runtime.generate import Generator
from bedstone.runtime.load import load
from runtime_toy import CONTEXT, PAGE, VOCAB, expected, toy_parts

PROMPT = [5, 11, 2, 40, 7, 1, 31, 8, 3, 9, 21]


@pytest.fixture
def session(toy, cache):
    with load(toy, cache=cache, threads=2) as session:
        yield session


def test_chain_prefill_and_steps_agree_with_the_sum(session):
    assert list(Generator(session).generate(PROMPT, 12)) == expected(PROMPT, 12)


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 8])
def test_any_chunking_gives_the_same_tokens_and_state(session, chunk):
    order = [7, 2, 9, 0, 5, 4, 1, 3, 8, 6]
    generator = Generator(session, pages=order)
    assert generator.prefill(PROMPT, chunk) == expected(PROMPT, 1)[0]
    table = session.region("kv").view(np.int64)
    slots = [order[at // PAGE] * PAGE + at % PAGE for at in range(len(PROMPT))]
    assert table[slots].tolist() == PROMPT


def test_without_a_chain_the_token_goes_back_through_the_host(tmp_path, cache):
    with load(toy_parts(tmp_path, cache, chain=False), cache=cache, threads=1) as session:
        assert list(Generator(session).generate(PROMPT, 9)) == expected(PROMPT, 9)


def test_many_steps_in_one_replay(session):
    generator = Generator(session)
    first = generator.prefill(PROMPT)
    assert [first, *generator.advance(9)] == expected(PROMPT, 10)
    assert generator.length == len(PROMPT) + 9


def test_a_second_prompt_goes_on_from_the_first(session):
    generator = Generator(session)
    history = [*PROMPT, *generator.generate(PROMPT, 3)]
    # the last token was handed out and not yet fed
    assert generator.prefill([history[-1], 4, 4]) == expected([*history, 4, 4], 1)[0]


def test_the_last_position_is_used_and_no_more(session):
    generator = Generator(session)
    assert generator.limit == CONTEXT
    room = CONTEXT - len(PROMPT) + 1
    assert list(generator.generate(PROMPT, 1000)) == expected(PROMPT, room)
    assert generator.finish == "length"
    assert generator.length == CONTEXT
    with pytest.raises(CapacityError, match=f"after {CONTEXT}: the context holds {CONTEXT}"):
        generator.step()


def test_a_prompt_that_fills_the_context_gives_one_token(session):
    prompt = [1] * CONTEXT
    assert list(Generator(session).generate(prompt, 5)) == expected(prompt, 1)


def test_a_longer_prompt_is_refused_before_anything_runs(session):
    before = session.region("kv")
    with pytest.raises(
        CapacityError, match=f"has {CONTEXT + 1} tokens, the context holds {CONTEXT}"
    ):
        next(Generator(session).generate([1] * (CONTEXT + 1), 1))
    assert np.array_equal(session.region("kv"), before)


def test_reserved_tokens_bound_the_context(toy, cache):
    with load(toy, cache=cache, threads=1, tokens=4 * PAGE + 3) as session:
        assert session.capacity.notes == ("19 tokens are rounded down to 16, whole pages of 4",)
        generator = Generator(session)
        assert generator.limit == 16
        assert list(generator.generate([3] * 10, 99)) == expected([3] * 10, 7)


def test_less_than_a_page_is_refused(toy, cache):
    with pytest.raises(CapacityError, match="room for 3 tokens: expected one page of 4"):
        load(toy, cache=cache, threads=1, tokens=PAGE - 1)


def test_a_stop_token_ends_and_is_not_yielded(session):
    tokens = expected(PROMPT, 6)
    generator = Generator(session)
    assert list(generator.generate(PROMPT, 6, {tokens[3]})) == tokens[:3]
    assert generator.finish == "stop"


@pytest.mark.parametrize("chain", [True, False])
def test_c30_a_step_without_finite_logits_fails_and_says_which(tmp_path, cache, chain):
    prompt = [12, 12]  # 24, 48, 96: the second step after the prompt's is broken
    with load(toy_parts(tmp_path, cache, chain=chain), cache=cache, threads=2) as session:
        generator = Generator(session)
        made = []
        with pytest.raises(WeightError, match=r"non-finite logits at step 2: .* set `error` to 1"):
            made.extend(generator.generate(prompt, 9))
        generator.reset()
        made.append(generator.prefill([3]))
    assert made[-1] == 3


def test_c30_a_broken_prompt_fails_at_step_0(session):
    with pytest.raises(WeightError, match="non-finite logits at step 0"):
        Generator(session).prefill([VOCAB - 1])


def test_tokens_outside_the_vocabulary_are_refused(session):
    with pytest.raises(CallerError, match="input `token` element 1 is 97: expected 0 to 96"):
        Generator(session).prefill([1, VOCAB])


@pytest.mark.parametrize("prompt", [[], np.array([], np.int64), ""])
def test_an_empty_prompt_is_refused(session, prompt):
    with pytest.raises(CallerError, match="the prompt is empty"):
        Generator(session).prefill(prompt)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([1.5], "a prompt is a sequence of token ids: 'float'"),
        ("ab", "a prompt is a sequence of token ids: 'str'"),
        (5, "a prompt is a sequence of token ids: 'int'"),
        ([2**40], "input `token` takes i32: .*1099511627776"),
    ],
)
def test_a_prompt_is_token_ids(session, prompt, message):
    with pytest.raises(CallerError, match=message):
        Generator(session).prefill(prompt)


def test_a_prompt_may_be_an_array(session):
    assert Generator(session).prefill(np.array(PROMPT)) == expected(PROMPT, 1)[0]


def test_a_generation_ends_where_another_begins(session):
    first = session.generate(PROMPT, 9)
    made = [next(first), next(first)]
    second = session.generate([4, 4], 9)
    made.append(next(first))
    assert made == expected(PROMPT, 3)
    assert next(second) == 8
    with pytest.raises(CallerError, match="another generation began"):
        list(first)
    assert list(second) == expected([4, 4], 9)[1:]


def test_generations_may_be_made_first_and_run_later(session):
    prompts = [PROMPT, [4, 4], [1]]
    waiting = [session.generate(prompt, 4) for prompt in prompts]
    assert [list(each) for each in waiting] == [expected(prompt, 4) for prompt in prompts]


def test_steps_need_a_prompt(session):
    with pytest.raises(CallerError, match="prefill a prompt first"):
        Generator(session).step()


def test_an_interrupt_between_steps_leaves_a_session_that_closes(toy, cache):
    def take():
        for index, _ in enumerate(generator.generate(PROMPT, 20)):
            if index == 4:
                raise KeyboardInterrupt

    session = load(toy, cache=cache, threads=2)
    generator = Generator(session)
    with pytest.raises(KeyboardInterrupt):
        take()
    generator.reset()
    assert generator.prefill([1, 2]) == 3
    session.close()
    session.close()
    with pytest.raises(CallerError, match="closed"):
        generator.step()


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_the_number_of_threads_changes_nothing(toy, cache, threads):
    with load(toy, cache=cache, threads=threads) as session:
        assert list(Generator(session).generate(PROMPT, 20)) == expected(PROMPT, 20)


def test_an_input_nobody_fills_is_refused(toy, cache):
    buffers = dict(toy.manifest.buffers)
    buffers["slot"] = replace(buffers["slot"], fill=None, domain=None)
    parts = replace(toy, manifest=replace(toy.manifest, buffers=buffers))
    with (
        load(parts, cache=cache, threads=1) as session,
        pytest.raises(CallerError, match="reads `slot`, which only its caller can write"),
    ):
        Generator(session)
