"""The client most programs use, and requests made at random from the document."""

import json

import jsonschema
import openai
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from bedstone.serve.http.settings import digests
from fronts import Fronted, saying
from scripted import SUCCESSOR

MESSAGES = [{"role": "user", "content": "hi"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"place": "Oslo"}}\n</tool_call>'


@pytest.fixture
def client(served):
    """Makes clients of fronts."""
    made = []

    def make(*args, **options):
        key = "a key of it"
        server = served(*args, keys=digests([key]), **options)
        made.append(openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_openai_chats(client):
    speaker = client(*saying(["He", "llo", "!"]))
    answer = speaker.chat.completions.create(model="scripted", messages=MESSAGES)
    assert answer.choices[0].message.content == "Hello!"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.completion_tokens == 3
    chunks = list(
        speaker.chat.completions.create(
            model="scripted", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "Hello!"
    assert chunks[-1].usage.completion_tokens == 3
    assert [model.id for model in speaker.models.list()] == ["scripted"]


def test_openai_completes(client):
    speaker = client()
    answer = speaker.completions.create(
        model="scripted", prompt=[0, 1], max_tokens=2, temperature=0, logprobs=1, echo=True, n=2
    )
    assert [choice.text for choice in answer.choices] == ["<0><1><2><3>"] * 2
    assert answer.choices[0].logprobs.token_logprobs == [None, SUCCESSOR, SUCCESSOR, SUCCESSOR]
    chunks = speaker.completions.create(model="scripted", prompt="a", max_tokens=2, stream=True)
    assert len([chunk.choices[0].text for chunk in chunks]) >= 1


def test_openai_calls_tools_as_they_stream(client):
    speaker = client(*saying(list(CALL)), tools="hermes")
    with speaker.chat.completions.stream(
        model="scripted", messages=MESSAGES, tools=[WEATHER]
    ) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    [call] = final.choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == (
        "weather", {"place": "Oslo"},
    )  # fmt: skip
    assert final.choices[0].finish_reason == "tool_calls"


def test_openai_reads_what_is_refused(client):
    speaker = client()
    with pytest.raises(openai.BadRequestError, match="context holds 4096") as caught:
        speaker.completions.create(model="scripted", prompt=[0], max_tokens=10**6)
    assert caught.value.code == "context_length_exceeded"
    with pytest.raises(openai.NotFoundError) as caught:
        speaker.chat.completions.create(model="gpt", messages=MESSAGES)
    assert caught.value.code == "model_not_found"
    stranger = openai.OpenAI(base_url=speaker.base_url, api_key="guessed", max_retries=0)
    with stranger, pytest.raises(openai.AuthenticationError):
        stranger.models.list()


CHECKS = (
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    negative_data_rejection,
)


@pytest.fixture(scope="module")
def front():
    made = Fronted(tools="hermes", reasoning=True)
    yield made
    made.close()


@pytest.fixture(scope="module")
def document(front):
    return schemathesis.openapi.from_dict(front.get("/openapi.json").json())


POSITIVE, NEGATIVE = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
ROUNDS = {
    ("POST", "/v1/chat/completions", POSITIVE): 8,
    ("POST", "/v1/chat/completions", NEGATIVE): 20,
    ("POST", "/v1/completions", POSITIVE): 30,
    ("POST", "/v1/completions", NEGATIVE): 40,
    ("POST", "/tokenize", POSITIVE): 5,
    ("POST", "/tokenize", NEGATIVE): 4,
    ("POST", "/detokenize", POSITIVE): 10,
    ("POST", "/detokenize", NEGATIVE): 10,
    ("GET", "/v1/models/{model}", POSITIVE): 10,
    ("GET", "/v1/models", POSITIVE): 1,
    ("GET", "/health", POSITIVE): 1,
    ("GET", "/metrics", POSITIVE): 1,
    ("GET", "/stats", POSITIVE): 1,
    ("GET", "/", POSITIVE): 1,
}


@pytest.mark.parametrize(
    ("path", "component", "fields"),
    [
        ("/v1/chat/completions", "ChatChunk", {"logprobs": True, "top_logprobs": 2}),
        ("/v1/chat/completions", "ChatChunk", {"return_token_ids": True}),
        ("/v1/completions", "Completion", {"prompt": [0], "logprobs": 1, "echo": True}),
    ],
)
def test_events_are_what_the_document_says(front, path, component, fields):
    document = front.get("/openapi.json").json()
    schema = {"$ref": f"#/components/schemas/{component}", "components": document["components"]}
    validator = jsonschema.Draft202012Validator(schema)
    told = front.stream(path, max_tokens=3, stream_options={"include_usage": True}, **fields)
    assert len(told) > 1
    for event in told:
        validator.validate(event)
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**told[0], "id": 7})


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path", "mode"), ROUNDS)
def test_whatever_the_document_allows_is_answered_as_it_says(front, document, method, path, mode):
    @settings(
        max_examples=ROUNDS[method, path, mode],
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(document[path][method].as_strategy(generation_mode=mode))
    def tried(case):
        response = front.run(lambda client: client.request(**_sent(case)))
        told = schemathesis.Response.from_httpx(response, verify=False)
        case.validate_response(told, checks=CHECKS)

    tried()


def _sent(case):
    sent = {k: v for k, v in case.as_transport_kwargs().items() if k != "cookies"}
    if isinstance(sent.get("data"), bytes | str):
        sent["content"] = sent.pop("data")
    return sent
