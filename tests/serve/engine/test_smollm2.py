"""A real model: each of many says what it says alone, and a prefix is not read again."""

from time import thread_time

import pytest

from bedstone.checkpoint.reference import open_checkpoint
from bedstone.runtime.load import load
from bedstone.serve.engine.options import Options
from bedstone.serve.requests import Sampling
from driven import Driven
from packages import compiled
from smollm2 import REFERENCE, TEXT

pytestmark = pytest.mark.slow

MANY = 16


@pytest.fixture(scope="module")
def tokens():
    opened = open_checkpoint(REFERENCE)
    try:
        return 4 * opened.tokenizer.encode(TEXT, special=False)
    finally:
        opened.close()


@pytest.fixture(scope="module")
def session(tmp_path_factory, cache):
    out = tmp_path_factory.mktemp("smollm2") / "package"
    package = compiled(REFERENCE, out, cache, context=1024, sequences=MANY, sampler=True)
    with load(package.path, cache=cache, sequences=MANY, tokens=8192) as opened:
        yield opened


def test_sixteen_together_say_what_each_says_alone(session, tokens):
    prompts = [tokens[11 * at : 11 * at + 5 + 9 * at] for at in range(MANY)]
    samplings = [Sampling(0.8 * (at % 2), top_p=0.95, seed=at) for at in range(MANY)]
    engine = Driven(session, Options())
    for index, prompt in enumerate(prompts):
        engine.submit(str(index), prompt, 12, sampling=samplings[index])
    engine.finish()
    for index, prompt in enumerate(prompts):
        alone = list(session.generate(prompt, 12, (), samplings[index]))
        assert engine.tokens[str(index)] == alone, index


def test_a_prefix_that_is_there_is_not_read_again(session, tokens):
    """The second of two questions about one text comes after a fraction of the time."""
    engine = Driven(session, Options())
    engine.submit("warm-up", tokens[500:520], 1)
    engine.finish()
    text, spent = tokens[:480], {}
    for name, question in (("cold", tokens[600:610]), ("warm", tokens[620:630])):
        engine.submit(name, [*text, *question], 1)
        began = thread_time()
        engine.finish()
        spent[name] = thread_time() - began
    assert (engine.ends["cold"].cached, engine.ends["warm"].cached) == (0, 480)
    assert spent["warm"] < spent["cold"] / 4
