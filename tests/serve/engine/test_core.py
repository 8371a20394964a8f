"""Requests of a model whose answers are known: alone, together, under every kind of shortage."""

import pytest

from served_toy import answers

PROMPTS = [[5, 11, 2, 40, 7], [1], [9, 9, 31, 8, 3, 77, 21, 4, 50, 60, 2, 1], list(range(1, 30))]


def test_one_request(core):
    engine = core()
    engine.submit("a", PROMPTS[0], 6)
    engine.finish()
    assert engine.tokens["a"] == answers(PROMPTS[0], 6)
    end = engine.ends["a"]
    assert (end.reason, end.prompt, end.cached, end.made) == ("length", 5, 0, 6)


SHAPES = [{}, {"told": False}, {"emits": False}, {"folded": True}, {"folded": True, "told": False}]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_several_requests_are_answered_as_each_alone(core, shape):
    engine = core(**shape)
    for index, prompt in enumerate(PROMPTS):
        engine.submit(f"r{index}", prompt, 3 + 5 * index)
    engine.finish()
    for index, prompt in enumerate(PROMPTS):
        folded = bool(shape.get("folded"))
        assert engine.tokens[f"r{index}"] == answers(prompt, 3 + 5 * index, folded=folded)
