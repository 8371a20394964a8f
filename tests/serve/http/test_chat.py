"""`/v1/chat/completions` over engines that say what the test scripts."""

import json

import pytest

from bedstone.serve.requests import Limits
from fronts import CHAT, saying, told
from scripted import SUCCESSOR, letters

PATH = "/v1/chat/completions"
ARGUMENTS = '{"cmd":"mkdir -p test/{a,b","n":[{"k":1}]}'
CALL = f'<tool_call>\n{{"name":"run","arguments":{ARGUMENTS}}}\n</tool_call>'


def tool(name, **properties):
    return {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": properties}},
    }


def streamed_calls(events):
    """Names and joined arguments of the calls of a stream; id and name come once."""
    calls = {}
    for event in events:
        told = event["choices"][0]["delta"].get("tool_calls", [])
        assert len({call["index"] for call in told}) == len(told)
        for call in told:
            if call["index"] not in calls:
                assert call["id"].startswith("call_")
                calls[call["index"]] = [call["function"]["name"], ""]
            else:
                assert call.keys() == {"index", "function"}
                assert call["function"].keys() == {"arguments"}
            calls[call["index"]][1] += call["function"]["arguments"]
    return [tuple(calls[index]) for index in sorted(calls)]


def whole_calls(body):
    message = body["choices"][0]["message"]
    return [(c["function"]["name"], c["function"]["arguments"]) for c in message["tool_calls"]]


def both(front, **fields):
    """Content and finish, the same with a stream and without."""
    choice = front.chat(**fields)["choices"][0]
    found = choice["message"]["content"] or "", choice["finish_reason"]
    assert told(front.stream(PATH, **fields)) == found
    return found


def refused(front, param=None, **fields):
    body = {"messages": [{"role": "user", "content": "hi"}], **fields}
    response = front.post(PATH, body)
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert param in {None, error["param"]}
    return error["message"]


def test_g06_usage_only_on_request(fronted):
    front = fronted(*saying(["a", "b", "c", "d"]))
    plain = front.stream(PATH)
    assert all(event.get("usage") is None and event["choices"] for event in plain)
    events = front.stream(PATH, stream_options={"include_usage": True})
    assert [event for event in events if not event["choices"]] == [events[-1]]
    assert all(event["usage"] is None for event in events[:-1])
    usage = events[-1]["usage"]
    assert usage["completion_tokens"] == 4
    assert usage["total_tokens"] == usage["prompt_tokens"] + 4


def test_g07_several_choices_in_a_stream(fronted):
    front = fronted(*saying(["a", "b", "c"]))
    events = front.stream(PATH, n=3, max_tokens=2)
    assert [told(events, index) for index in range(3)] == [("ab", "length")] * 3
    roles = [c["index"] for e in events for c in e["choices"] if c["delta"].get("role")]
    assert sorted(roles) == [0, 1, 2]


def test_g18_the_wire_format_of_a_stream(fronted):
    front = fronted(*saying(["a", "b", "c"]))
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
    response = front.post(PATH, body)
    assert response.headers["content-type"].split(";")[0] == "text/event-stream"
    blocks = response.text.split("\n\n")
    assert blocks[-2:] == ["data: [DONE]", ""]
    events = [json.loads(block.removeprefix("data: ")) for block in blocks[:-2]]
    assert len({(event["id"], event["created"]) for event in events}) == 1
    assert ["role" in event["choices"][0]["delta"] for event in events] == [
        True, *[False] * (len(events) - 1),
    ]  # fmt: skip


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_g20_braces_and_brackets_in_arguments(fronted, size):
    pieces = [CALL[at : at + size] for at in range(0, len(CALL), size)]
    front = fronted(*saying(pieces), tools="hermes")
    tools = [tool("run", cmd={"type": "string"})]
    body = front.chat(tools=tools)
    [(name, arguments)] = whole_calls(body)
    assert name == "run"
    assert json.loads(arguments) == {"cmd": "mkdir -p test/{a,b", "n": [{"k": 1}]}
    assert body["choices"][0]["finish_reason"] == "tool_calls"
    assert body["choices"][0]["message"]["content"] is None
    events = front.stream(PATH, tools=tools)
    assert streamed_calls(events) == [(name, arguments)]
    assert told(events) == ("", "tool_calls")


@pytest.mark.parametrize("call", ['{"name":"on","arguments":{}}', '{"name":"on"}'])
def test_g21_a_call_without_arguments(fronted, call):
    front = fronted(*saying(["<tool_call>", *call, "</tool_call>"]), tools="hermes")
    assert whole_calls(front.chat(tools=[tool("on")])) == [("on", "{}")]
    assert streamed_calls(front.stream(PATH, tools=[tool("on")])) == [("on", "{}")]


def test_g23_values_have_the_schemas_type(fronted):
    text = "<tool_call><function=f><parameter=i>10</parameter><parameter=s>007</parameter>"
    front = fronted(*saying([*text, "</function></tool_call>"]), tools="qwen3_coder")
    tools = [tool("f", i={"type": "integer"}, s={"type": "string"})]
    [(_, arguments)] = whole_calls(front.chat(tools=tools))
    assert json.loads(arguments) == {"i": 10, "s": "007"}
    assert streamed_calls(front.stream(PATH, tools=tools)) == [("f", arguments)]


def test_g24_a_cut_call_is_not_whole(fronted):
    text = "<function=f><parameter=a>1"
    front = fronted(*saying(list(text)), tools="qwen3_coder")
    fields = {"tools": [tool("f", a={"type": "integer"})], "max_tokens": len(text)}
    assert both(front, **fields) == ("", "length")


def test_g25_a_stop_string_while_a_parser_holds_text(fronted):
    front = fronted(*saying(list("price <to STOP")), tools="hermes")
    fields = {"stop": ["STOP"], "tools": [tool("f")], "tool_choice": "auto"}
    assert both(front, **fields) == ("price <to ", "stop")


REFUSING = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{{ messages[0].content }}"
)


def test_g27_a_template_refuses_the_messages(fronted):
    front = fronted(*saying(["a"]), template=REFUSING)
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}]
    assert "System role not supported" in refused(front, messages=messages)
    messages[0]["role"] = "developer"
    assert "System role not supported" in refused(front, messages=messages)
    front.chat()


def test_g27_a_list_of_parts_is_the_same_as_its_text(fronted):
    front = fronted(*saying(["a"]))
    ids = [
        front.chat(content, return_token_ids=True)["choices"][0]["prompt_token_ids"]
        for content in ("hi", [{"type": "text", "text": "hi"}])
    ]
    assert ids[0] == ids[1]
    picture = [{"type": "image_url", "image_url": {"url": "x"}}]
    refused(front, messages=[{"role": "user", "content": picture}])


def test_g27_a_template_that_never_ends_is_cut_off(fronted):
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    front = fronted(*saying(["a"]), template=endless)
    assert "the chat template failed" in refused(front, param="messages")
    assert front.get("/health").status_code == 200


def test_g34_newer_and_unknown_fields(fronted):
    front = fronted(*saying(list("abcdef")))
    assert both(front, max_completion_tokens=2) == ("ab", "length")
    assert both(front, max_tokens=3, max_completion_tokens=2) == ("ab", "length")
    assert refused(front, param="frobnicate", frobnicate=1) == "unknown field `frobnicate`"
    assert both(front, user="u", store=False, metadata={"a": "b"})[0] == "abcdef"
    response = front.post(PATH, {"messages": [{"role": "user", "content": ""}], "model": "gpt"})
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "model_not_found"


def test_g34_a_form_that_cannot_be_kept_is_refused(fronted):
    limits = Limits(4096, 400, 4, 16, ("constraint",))
    front = fronted(*saying(["a"]), limits=limits)
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    assert "without a sampler" in refused(front, response_format=schema)
    front = fronted(*saying(["a"]))
    wrong = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "word"}}}
    assert "the grammar cannot be used" in refused(front, response_format=wrong)
    refused(front, response_format={"type": "json_schema"})
    refused(front, response_format={"type": "yaml"})


def test_an_answer_keeps_to_a_schema(fronted):
    front = fronted(*saying(["no"]))
    schema = {
        "type": "object",
        "properties": {"a": {"enum": [True]}},
        "required": ["a"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    fields = {"response_format": form, "n": 2}
    for choice in front.chat(**fields, max_tokens=100)["choices"]:
        assert json.loads(choice["message"]["content"]) == {"a": True}
        assert choice["finish_reason"] == "stop"
    body = front.complete("x", guided_choice=["yes.", "(no)"])
    assert body["choices"][0]["text"] in {"yes.", "(no)"}
    assert front.complete("x", guided_regex="[0-9]{3}")["choices"][0]["text"].isdigit()
    refused(front, guided_regex="a", guided_choice=["b"])


@pytest.mark.parametrize("way", ["hermes", "llama3", "qwen3_coder"])
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "f"}}])
def test_a_call_that_is_asked_for_is_made(fronted, way, choice):
    # the end comes first: whatever is allowed first is said
    front = fronted(letters(["", "no"], eos=[0]), saying(["no"])[1], tools=way)
    schema = tool("f", a={"enum": [1]})
    schema["function"]["parameters"] |= {"required": ["a"], "additionalProperties": False}
    body = front.chat(tools=[schema], tool_choice=choice, max_tokens=200)
    assert [(n, json.loads(a)) for n, a in whole_calls(body)] == [("f", {"a": 1})]
    assert body["choices"][0]["finish_reason"] == "tool_calls"


def test_a_tool_that_is_named_is_called_once_and_any_as_often_as_the_model_likes(fronted):
    text = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    vocabulary = letters([], special=["<eos>"], eos=[256])
    twice = [*vocabulary.encode(f"{text}\n{text}", special=False), 256]
    front = fronted(vocabulary, lambda _: iter(twice), tools="hermes")
    schema = tool("f", a={"enum": [1]})
    named = {"type": "function", "function": {"name": "f"}}
    for choice, count in (("required", 2), (named, 1)):
        body = front.chat(tools=[schema], tool_choice=choice, max_tokens=200)
        assert [(n, json.loads(a)) for n, a in whole_calls(body)] == [("f", {"a": 1})] * count


def test_tools_that_cannot_be_used_are_refused(fronted):
    front = fronted(*saying([CALL]), tools="hermes")
    named = {"type": "function", "function": {"name": "g"}}
    refused(front, "tool_choice", tools=[tool("f")], tool_choice=named)
    refused(front, "tool_choice", tool_choice="required")
    refused(front, "tools", tools=[tool("f"), tool("f")])
    refused(front, "tools[0].function.name", tools=[tool("a b")])
    assert CALL in both(front, tools=[tool("f")], tool_choice="none")[0]
    assert CALL in both(front)[0]
    front = fronted(*saying([CALL]))
    assert "takes none" in refused(front, "tools", tools=[tool("f")])
    front = fronted(*saying([CALL]), tools="hermes", template="{{ messages[0].content }}")
    assert "takes none" in refused(front, "tools", tools=[tool("f")])


def test_one_call_is_enough_where_only_one_is_wanted(fronted):
    call = '<tool_call>{"name": "f"}</tool_call>'
    front = fronted(*saying([call[:20], call[20:] + call + "x", call]), tools="hermes")
    fields = {"tools": [tool("f")], "parallel_tool_calls": False}
    body = front.chat(**fields)
    assert whole_calls(body) == [("f", "{}")]
    assert body["usage"]["completion_tokens"] == 2
    events = front.stream(PATH, **fields)
    assert streamed_calls(events) == [("f", "{}")]
    assert told(events)[1] == "tool_calls"
    assert len(whole_calls(front.chat(tools=[tool("f")]))) == 3


def test_the_model_is_told_of_tools_and_of_calls_it_made(fronted):
    front = fronted(*saying(["a"]), tools="hermes")
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    broken = {"id": "2", "type": "function", "function": {"name": "f", "arguments": '{"a": '}}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call, broken], "refusal": None},
        {"role": "tool", "tool_call_id": "1", "content": "ok"},
    ]
    response = front.post(
        PATH, {"messages": messages, "tools": [tool("f")], "return_token_ids": True}
    )
    prompt = response.json()["choices"][0]["prompt_token_ids"]
    text = front.vocabulary.decode(prompt)
    assert '(f {"a": 1})(f {"arguments": "{\\"a\\": "})' in text
    assert '"name": "f"' in text.partition("[tool]ok")[2]


def test_thoughts_are_told_apart(fronted):
    front = fronted(*saying(list("so</think>\n\nYes")), reasoning=True, template=CHAT + "<think>\n")
    message = front.chat()["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("Yes", "so")
    events = front.stream(PATH)
    thought = [e["choices"][0]["delta"].get("reasoning_content", "") for e in events]
    assert "".join(thought) == "so"
    assert told(events) == ("Yes", "stop")
    form = {"guided_regex": "[0-9]", "max_tokens": 40}
    message = front.chat(**form)["choices"][0]["message"]
    assert message["reasoning_content"] == "so"
    assert message["content"].isdigit()


def test_markers_that_are_special_tokens_are_read(fronted):
    special = ["<tool_call>", "</tool_call>"]
    vocabulary, _ = saying(['{"name": "f"}'], special=special)
    first = vocabulary.id_of("<tool_call>")

    def script(_request):
        yield from (first, 0, first + 1, None)

    front = fronted(vocabulary, script, tools="hermes")
    assert whole_calls(front.chat(tools=[tool("f")])) == [("f", "{}")]


def test_g10_the_shape_of_log_probabilities(fronted):
    front = fronted()
    [choice] = front.chat(logprobs=True, top_logprobs=2, max_tokens=2)["choices"]
    content = choice["logprobs"]["content"]
    assert len(content) == 2
    for each in content:
        assert each["bytes"] == list(each["token"].encode())
        tops = [top["logprob"] for top in each["top_logprobs"]]
        assert tops == sorted(tops, reverse=True)
        assert len(tops) == 2
        assert each["logprob"] == SUCCESSOR
    [choice] = front.chat(logprobs=True, max_tokens=1)["choices"]
    assert choice["logprobs"]["content"][0]["top_logprobs"] == []
    assert "needs `logprobs`" in refused(front, "top_logprobs", top_logprobs=2)
    refused(front, "top_logprobs", logprobs=True, top_logprobs=21)


def test_a_model_without_a_template_does_not_chat(fronted):
    front = fronted(*saying(["a"]), template=None)
    assert "no chat template" in refused(front)
