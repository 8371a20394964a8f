"""Texts made together are those made one by one, whichever ends first."""

from collections.abc import Iterator

import numpy as np
import pytest

from bedstone.errors import CallerError, CapacityError, WeightError
from bedstone.runtime.load import load
from bedstone.runtime.session import Session
from bedstone.runtime.together import Together
from letters import write_tokenizer
from packages import PAGE, compiled
from tiny_models import LONG, write_tiny

MANY = 5
PROMPTS = (LONG[:7], LONG[3:5], LONG[:40], LONG[:1], LONG[9:30])


@pytest.fixture(scope="module", params=["llama-biases", "qwen3-next", "deepseek-v3"])
def package(request, tmp_path_factory, cache):
    folder = tmp_path_factory.mktemp(request.param)
    write_tiny(request.param, folder / "checkpoint")
    write_tokenizer(folder / "checkpoint")
    return compiled(str(folder / "checkpoint"), folder / "package", cache, sequences=MANY)


@pytest.fixture
def session(package, cache) -> Iterator[Session]:
    with load(package.path, cache=cache, tokens=2 * PAGE * MANY, sequences=MANY) as loaded:
        yield loaded


def told(session: Session, prompts, *arguments) -> list[list[int]]:
    texts: list[list[int]] = [[] for _ in prompts]
    for index, token in session.generate_together(prompts, *arguments):
        texts[index].append(token)
    return texts


@pytest.mark.parametrize("count", range(1, MANY + 1))
def test_each_says_what_it_says_alone(session, count):
    alone = [list(session.generate(prompt, 20)) for prompt in PROMPTS[:count]]
    assert told(session, PROMPTS[:count], 20) == alone
    assert told(session, PROMPTS[:count], 1) == [text[:1] for text in alone]


def test_one_that_ends_leaves_the_others_as_they_are(session):
    """Each ends at its own fifth token at the latest: that is a stop token to all."""
    stops = {list(session.generate(prompt, 5))[-1] for prompt in PROMPTS[:3]}
    alone = [list(session.generate(prompt, 24, stops)) for prompt in PROMPTS]
    together = Together(session, MANY)
    texts: list[list[int]] = [[] for _ in PROMPTS]
    for index, token in together.generate(PROMPTS, 24, stops):
        texts[index].append(token)
    assert texts == alone
    assert "stop" in together.finish
    lengths = [len(text) for text in texts]
    assert together.finish == ["length" if n == 24 else "stop" for n in lengths]


def test_a_text_ends_where_its_pages_do(session):
    (text,) = told(session, [LONG[:40]], 1000)
    assert len(text) == len(list(session.generate(LONG[:40], 1000)))
    texts = told(session, [LONG[:40]] * MANY, 1000)
    assert texts == [text] * MANY


def test_what_does_not_fit_is_said(session, package, cache):
    with pytest.raises(CallerError, match="each of 6 sequences: compile with `--sequences 6`"):
        told(session, [LONG[:2]] * 6, 3)
    with pytest.raises(CallerError, match="expected 2 prompts and 1 token"):
        list(Together(session, 2).generate(PROMPTS, 3))
    with pytest.raises(CallerError, match="expected 5 prompts and 1 token"):
        told(session, PROMPTS, 0)
    with (
        load(package.path, cache=cache, tokens=2 * PAGE, sequences=MANY) as small,
        pytest.raises(CapacityError, match="3 sequences: the session holds 2 pages"),
    ):
        told(small, PROMPTS[:3], 3)


def test_c30_a_step_without_finite_logits_ends_it(session, monkeypatch):
    """One flag serves the whole step: it says that a sequence failed, not which."""
    repeat = session.repeat

    def failing(program, times, collect, **given):
        tokens, error = repeat(program, times, collect, **given)
        return tokens, np.ones_like(error)

    going = session.generate_together(PROMPTS[:2], 9)
    assert [index for index, _ in (next(going), next(going))] == [0, 1]
    monkeypatch.setattr(session, "repeat", failing)
    with pytest.raises(WeightError, match=r"non-finite logits of one of 2 .*`error` to 1"):
        next(going)


def test_another_generation_ends_it(session):
    going = session.generate_together(PROMPTS[:2], 9)
    next(going)
    list(session.generate(PROMPTS[0], 2))
    with pytest.raises(CallerError, match="another generation began"):
        list(going)
