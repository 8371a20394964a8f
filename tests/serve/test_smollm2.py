"""A real chat model behind the server says what it says alone."""

import json

import pytest

from bedstone.checkpoint.reference import open_checkpoint
from bedstone.runtime.load import load
from fronts import events, told
from packages import compiled
from smollm2 import REFERENCE
from whole import serving

pytestmark = pytest.mark.slow

TEMPLATE = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
SYSTEM = "<|im_start|>system\nAnswer in a word.<|im_end|>\n"
QUESTIONS = ("What is the capital of France?", "Which colour has the sky?")
MOST = 24
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "big": {"type": "boolean"}},
    "required": ["city", "big"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def package(tmp_path_factory, cache):
    folder = tmp_path_factory.mktemp("smollm2")
    how = {"context": 256, "sequences": 2, "sampler": True}
    return compiled(REFERENCE, folder / "package", cache, **how).path


@pytest.fixture(scope="module")
def alone(package, cache):
    """What it says to each question by itself."""
    opened = open_checkpoint(REFERENCE)
    tokenizer = opened.tokenizer
    with load(package, cache=cache, threads=1) as session:
        said = [
            tokenizer.decode(
                session.generate(
                    tokenizer.encode(SYSTEM + TEMPLATE.format(question), special=True),
                    MOST,
                    tokenizer.eos,
                )
            )
            for question in QUESTIONS
        ]
    opened.close()
    return said


@pytest.fixture(scope="module")
def server(package, cache):
    with serving(package, cache, 2) as opened:
        yield opened


def ask(server, question, **fields):
    system = {"role": "system", "content": "Answer in a word."}
    body = {
        "messages": [system, {"role": "user", "content": question}],
        "temperature": 0,
        "max_tokens": MOST,
        **fields,
    }
    return server.client.post(f"{server.url}/v1/chat/completions", json=body)


def test_it_says_what_it_says_alone(server, alone):
    for question, said in zip(QUESTIONS, alone, strict=True):
        whole = ask(server, question, n=2).json()["choices"]
        assert [choice["message"]["content"] for choice in whole] == [said, said]
        assert told(events(ask(server, question, stream=True).text))[0] == said


def test_it_answers_in_a_form(server):
    form = {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA}}
    answer = ask(server, QUESTIONS[0], response_format=form, max_tokens=100).json()
    found = json.loads(answer["choices"][0]["message"]["content"])
    assert found.keys() == {"city", "big"}
    assert answer["choices"][0]["finish_reason"] == "stop"
