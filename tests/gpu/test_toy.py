"""The toy model end to end on a GPU, against what its tokens must be."""

import numpy as np
import pytest

from bedstone.errors import WeightError
from bedstone.runtime.generate import Generator
from bedstone.runtime.load import load
from runtime_toy import CONTEXT, PAGE, VOCAB, expected

PROMPT = [5, 11, 2, 40, 7, 1, 31, 8, 3, 9, 21]


@pytest.fixture
def session(toy_gpu):
    with load(toy_gpu, device="cuda") as session:
        yield session


def test_prompt_and_steps_agree_with_the_sum(session):
    assert list(Generator(session).generate(PROMPT, 12)) == expected(PROMPT, 12)


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 8])
def test_any_chunking_and_order_of_pages(session, chunk):
    order = [7, 2, 9, 0, 5, 4, 1, 3, 8, 6]
    generator = Generator(session, pages=order)
    assert generator.prefill(PROMPT, chunk) == expected(PROMPT, 1)[0]
    slots = [order[at // PAGE] * PAGE + at % PAGE for at in range(len(PROMPT))]
    assert session.region("kv").view(np.int64)[slots].tolist() == PROMPT


def test_steps_are_read_behind_the_device(session):
    generator = Generator(session)
    first = generator.prefill(PROMPT)
    runs = [session.start("chained", 1, ["next", "error"]) for _ in range(20)]
    found = [int(run.wait()[0].flat[0]) for run in runs]
    assert [first, *found] == expected(PROMPT, 21)


def test_a_stopped_stream_goes_on_where_it_was_read(session):
    tokens = expected(PROMPT, 4)
    generator = Generator(session)
    assert list(generator.generate(PROMPT, 20, {tokens[3]})) == tokens[:3]
    history = [*PROMPT, *tokens, 8]
    assert generator.prefill([tokens[3], 8]) == expected(history, 1)[0]


def test_the_whole_context_and_a_second_sequence(session):
    room = CONTEXT - len(PROMPT) + 1
    for _ in range(2):
        assert list(Generator(session).generate(PROMPT, 1000)) == expected(PROMPT, room)


def test_a_broken_step_says_which(session):
    with pytest.raises(WeightError, match="non-finite logits at step 2"):
        list(Generator(session).generate([12, 12], 9))


def test_e09_recorded_and_enqueued_steps_write_the_same_bytes(session):
    """One program recorded, the same calls enqueued one by one."""
    session.write("pages", np.arange(10, dtype=np.int32)[None])
    found = []
    for program, env in (("decode", {}), ("prefill", {"tokens": 1})):
        session.clear("kv", 0, CONTEXT * 8)
        outputs = []
        for at, token in enumerate(PROMPT):
            for name, value in (("token", token), ("position", at), ("slot", at)):
                session.write(name, np.array([value], np.int32))
            session.run(program, **env)
            outputs.append(session.read("next").tobytes() + session.region("kv").tobytes())
        found.append(outputs)
    assert found[0] == found[1]


def feed(session, tokens, first):
    """Tokens at positions from `first` on, a row each."""
    places = range(first, first + len(tokens))
    for name, values in (("token", tokens), ("position", places), ("slot", places)):
        session.write(name, np.array(values, np.int32))


def test_e01_what_a_shorter_call_leaves_out_is_not_read(session):
    session.write("pages", np.arange(10, dtype=np.int32)[None])
    feed(session, [VOCAB - 1] * 8, CONTEXT - 8)
    feed(session, PROMPT[:2], 0)
    session.run("prefill", tokens=2)
    assert int(session.read("next").flat[0]) == sum(PROMPT[:2]) % VOCAB
    assert not session.region("kv").view(np.int64)[2:].any()


def test_e05_a_prompt_between_two_steps_changes_neither(session):
    """What a step copies from the host is read before it, never again when it is replayed."""
    session.write("pages", np.arange(10, dtype=np.int32)[None])
    feed(session, PROMPT[:4], 0)
    session.run("prefill", tokens=4)
    found = []
    for _ in range(3):
        feed(session, [9], 4)
        session.run("decode")
        found.append((session.read("next").tobytes(), session.region("kv")[: 8 * 5].tobytes()))
        feed(session, PROMPT[4:], 20)
        session.run("prefill", tokens=len(PROMPT) - 4)
    assert found == found[:1] * 3


def test_inputs_rewritten_while_steps_run_take_effect(session):
    session.write("pages", np.arange(10, dtype=np.int32)[None])
    runs = []
    tokens = [(7 * at + 3) % VOCAB for at in range(CONTEXT)]
    for at, token in enumerate(tokens):
        for name, value in (("token", token), ("position", at), ("slot", at)):
            session.write(name, np.array([value], np.int32))
        runs.append(session.start("decode", 1, ["next"]))
    found = [int(run.wait()[0].flat[0]) for run in runs]
    assert found == [sum(tokens[: at + 1]) % VOCAB for at in range(CONTEXT)]


def test_two_sessions_share_the_gpu(toy_gpu, session):
    with load(toy_gpu, device="cuda") as other:
        streams = [Generator(s).generate(PROMPT, 15) for s in (session, other)]
        both = list(zip(*streams, strict=True))
    assert [a for a, _ in both] == [b for _, b in both] == expected(PROMPT, 15)
