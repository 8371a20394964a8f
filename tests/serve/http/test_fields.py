"""Fields that clients send and this server does not offer: harmless ones pass, others say why."""

import json

import jsonschema
import msgspec
import pytest
from openai.types import completion_create_params
from openai.types.chat import completion_create_params as chat_create_params

from bedstone.serve.http.idle import FIELDS
from bedstone.serve.http.shapes import ChatRequest, CompletionRequest
from fronts import saying
from scripted import letters

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
MESSAGES = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
OTHER = {**TOOL, "function": {"name": "g"}}


def asked(front, path, fields):
    body = {"messages": MESSAGES} if path == CHAT else {"prompt": [0]}
    return front.post(path, {**body, "max_tokens": 1, **fields})


def error(response):
    assert response.status_code == 400, response.text
    return response.json()["error"]


@pytest.mark.parametrize(
    ("request_type", "module", "name"),
    [
        (ChatRequest, chat_create_params, "CompletionCreateParams"),
        (CompletionRequest, completion_create_params, "CompletionCreateParams"),
    ],
)
def test_every_field_of_the_openai_client_is_offered_or_refused_with_a_reason(
    request_type, module, name
):
    documented = {
        field
        for kind in ("Base", "NonStreaming", "Streaming")
        for field in getattr(module, f"{name}{kind}").__annotations__
    }
    assert {"model", "stream"} < documented
    assert documented - {*request_type.__struct_fields__, *FIELDS} == set()


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_a_null_asks_for_nothing(fronted, path):
    front = fronted(tools="hermes")
    known = ChatRequest if path == CHAT else CompletionRequest
    optional = [
        field.name
        for field in msgspec.structs.fields(known)
        if field.default is not msgspec.NODEFAULT
    ]
    nulls = dict.fromkeys([*optional, *FIELDS, "top_a", "anything"])
    assert len(nulls) > 50
    assert asked(front, path, {**nulls, "max_tokens": 1}).status_code == 200
    if path == COMPLETIONS:
        [choice] = asked(front, path, {"top_a": None, "echo": True, "n": 1}).json()["choices"]
        assert choice["text"] == "<0><1>"
    # that a null is left out is no way around the others
    assert error(asked(front, path, {**nulls, "frobnicate": 0}))["param"] == "frobnicate"
    assert error(asked(front, path, {"top_a": None, "n": 0}))["param"] == "n"


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("name", FIELDS)
def test_a_value_that_changes_nothing_passes_and_any_other_is_refused(fronted, path, name):
    if path == COMPLETIONS and name in {"best_of", "echo"}:
        pytest.skip("offered")
    front = fronted(*saying(["a"]))
    for value in FIELDS[name].values:
        assert asked(front, path, {name: value}).status_code == 200
    for value in (7, "x", [1], not next(iter(FIELDS[name].values), None)):
        found = error(asked(front, path, {name: value}))
        assert (found["param"], found["code"]) == (name, "unsupported")
        assert FIELDS[name].why in found["message"]


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_the_document_lists_what_passes(fronted, path):
    document = fronted().get("/openapi.json").json()
    asks = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    validator = jsonschema.Draft202012Validator({**asks, "components": document["components"]})
    body = {"messages": MESSAGES} if path == CHAT else {"prompt": [0]}
    for fields in ({}, {"anything": None}, {"min_tokens": 0}, {"use_beam_search": False}):
        assert validator.is_valid({**body, **fields})
    for fields in ({"anything": 1}, {"min_tokens": 1}, {"suffix": "x"}, {"functions": [{}]}):
        assert not validator.is_valid({**body, **fields})


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_every_answer_says_what_computed_it(fronted, path):
    front = fronted(*saying(["a", "b"]), fingerprint="bs_1")
    assert asked(front, path, {}).json()["system_fingerprint"] == "bs_1"
    prompt = {} if path == CHAT else {"prompt": [0]}
    events = front.stream(path, stream_options={"include_usage": True}, **prompt)
    assert {event["system_fingerprint"] for event in events} == {"bs_1"}


def test_true_is_not_one(fronted):
    front = fronted(*saying(["a"]))
    for name, value in (("best_of", True), ("priority", False), ("echo", 0)):
        assert error(asked(front, CHAT, {name: value}))["param"] == name


def test_the_best_of_as_many_as_are_told_is_all_of_them(fronted):
    front = fronted()
    for fields in ({"best_of": 1}, {"best_of": 3, "n": 3}, {"n": 2}):
        choices = asked(front, COMPLETIONS, fields).json()["choices"]
        assert len(choices) == fields.get("n", 1)
    for fields in ({"best_of": 3}, {"best_of": 3, "n": 2}, {"best_of": 1, "n": 2}):
        assert "ask for `n`" in error(asked(front, COMPLETIONS, fields))["message"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"messages": [{"role": "human", "content": "hi"}]}, "expected `system`"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "expected `text`"),
        ({"messages": [{"role": "user", "content": [{"text": "hi"}]}]}, ".type` is missing"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "expected `function`"),
        ({"tool_choice": "any"}, "expected `none`, `auto`, `required`"),
        ({"tool_choice": {"type": "custom"}}, "expected `function`"),
        ({"response_format": {"type": "yaml"}}, "expected `text`, `json_object`"),
    ],
)
def test_who_sends_another_value_is_told_which_are_meant(fronted, fields, told):
    message = error(asked(fronted(*saying(["a"]), tools="hermes"), CHAT, fields))["message"]
    assert told in message


def prompt_of(front, messages, **fields):
    response = asked(front, CHAT, {"messages": messages, "return_token_ids": True, **fields})
    assert response.status_code == 200, response.text
    return front.vocabulary.decode(response.json()["choices"][0]["prompt_token_ids"])


def test_older_calls_and_their_answers_are_read_as_newer_ones(fronted):
    front = fronted(*saying(["a"]))
    call = {"name": "f", "arguments": '{"a": 1}'}
    older = [
        {"role": "assistant", "content": None, "function_call": call},
        {"role": "function", "name": "f", "content": "ok"},
    ]
    newer = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"type": "function", "function": call}],
        },
        {"role": "tool", "name": "f", "content": "ok"},
    ]
    assert prompt_of(front, older) == prompt_of(front, newer)
    assert '(f {"a": 1})[tool]ok' in prompt_of(front, older)


def test_an_earlier_thought_goes_by_either_name(fronted):
    template = "{% for m in messages %}[{{ m.reasoning_content }}]{{ m.content }}{% endfor %}"
    front = fronted(*saying(["a"]), template=template)
    for name in ("reasoning", "reasoning_content"):
        said = [{"role": "assistant", "content": "yes", name: "hm"}]
        assert prompt_of(front, said) == "[hm]yes"
    assert prompt_of(front, [{"role": "user", "content": "so"}]) == "[]so"


def test_an_earlier_refusal_is_text(fronted):
    front = fronted(*saying(["a"]))
    parts = [{"type": "text", "text": "I "}, {"type": "refusal", "refusal": "will not"}]
    assert "[assistant]I will not[" in prompt_of(front, [{"role": "assistant", "content": parts}])


def test_switches_reach_the_template(fronted):
    template = "{{ reasoning_effort }} {{ verbosity }} {{ mood }}|"
    front = fronted(*saying(["a"]), template=template)
    switches = {"reasoning_effort": "low", "verbosity": "high"}
    given = {"mood": "dark", "verbosity": "none"}
    assert prompt_of(front, MESSAGES, **switches) == "low high |"
    told = prompt_of(front, MESSAGES, **switches, chat_template_kwargs=given)
    assert told == "low none dark|"
    assert prompt_of(front, MESSAGES) == "  |"


def allowed(mode, *names):
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


def test_the_model_is_told_of_allowed_tools_alone(fronted):
    front = fronted(*saying(['<tool_call>{"name": "f"}</tool_call>']), tools="hermes")
    fields = {"tools": [TOOL, OTHER], "tool_choice": allowed("auto", "f"), "max_tokens": 9}
    told = prompt_of(front, MESSAGES, **fields)
    assert '"name": "f"' in told
    assert '"name": "g"' not in told
    assert asked(front, CHAT, fields).json()["choices"][0]["finish_reason"] == "tool_calls"
    fields["tool_choice"] = allowed("auto", "f", "h")
    assert "`h` is none of the `tools`" in error(asked(front, CHAT, fields))["message"]


def test_one_of_the_allowed_tools_may_be_required(fronted):
    # the end comes first: whatever is allowed first is said
    front = fronted(letters(["", "no"], eos=[0]), saying(["no"])[1], tools="hermes")
    fields = {"tools": [OTHER, TOOL], "tool_choice": allowed("required", "f"), "max_tokens": 200}
    message = asked(front, CHAT, fields).json()["choices"][0]["message"]
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["f"]


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        ({"regex": "[0-9]{3}"}, str.isdigit),
        ({"choice": ["yes.", "(no)"]}, ("yes.", "(no)").__contains__),
        ({"json": {"const": 7}}, lambda text: json.loads(text) == 7),
        ({"json_object": True}, lambda text: text.startswith("{")),
    ],
)
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_forms_as_vllm_asks_for_them(fronted, path, wanted, fits):
    front = fronted(*saying(["no"]))
    fields = {"structured_outputs": wanted, "max_tokens": 100}
    [choice] = asked(front, path, fields).json()["choices"]
    assert fits(choice["message"]["content"] if path == CHAT else choice["text"])
    both = error(asked(front, path, {**fields, "guided_regex": "a"}))
    assert "ask for different forms" in both["message"]
    for nothing in ({}, {"json_object": False}):
        assert asked(front, path, {"structured_outputs": nothing}).status_code == 200
