"""`/v1/completions` over an engine that counts: after token i comes i + 1."""

import json

import pytest

from bedstone.checkpoint.reference import open_checkpoint
from bedstone.serve.requests import Limits
from fronts import Fronted, saying, told
from scripted import OTHER, SUCCESSOR, letters
from succ import write_succ

PATH = "/v1/completions"
FACE = "\U0001f468\U0001f3fd\u200d\u2640\ufe0f".encode()


def limits(context=4096, sequences=4, queue=16, missing=()):
    return Limits(context, 400, sequences, queue, missing)


def user(content):
    return {"role": "user", "content": content}


def both(front: Fronted, **fields):
    """Text, finish and completion tokens, the same with a stream and without."""
    whole = front.complete(**fields)
    options = {"include_usage": True}
    events = front.stream(PATH, **{**fields, "stream_options": options})
    [choice] = whole["choices"]
    assert told(events) == (choice["text"], choice["finish_reason"])
    assert events[-1]["usage"] == whole["usage"]
    return choice["text"], choice["finish_reason"], whole["usage"]["completion_tokens"]


def refused(front: Fronted, param=None, code=None, **fields):
    """The message of a 400 that names a field; no stream has begun."""
    for stream in (False, True):
        response = front.post(PATH, {"prompt": [0], "stream": stream, **fields})
        assert response.status_code == 400, response.text
        error = response.json()["error"]
        assert error["type"] == "invalid_request_error"
        assert (param, code) == (param and error["param"], code and error["code"])
    return error["message"]


def test_g01_stop_string_split_over_two_chunks(fronted):
    front = fronted(letters(["A", "Hi", "\nUser", ":", " more", "<eos>"], eos=[5]))
    assert both(front, prompt=[0], max_tokens=8, stop=["\nUser:"]) == ("Hi", "stop", 3)
    text = ("Hi\nUser: more", "stop", 4)
    # what is held back at the end is told after all
    for stop in ("\nUserX", "more!"):
        assert both(front, prompt=[0], max_tokens=8, stop=stop) == text


@pytest.mark.parametrize("stop", [["beta gamma"], ["gamma", "beta"]])
def test_g02_stop_string_inside_a_token(fronted, stop):
    front = fronted(letters(["A", "alpha", " beta g", "amma delta", " x", "<eos>"], eos=[5]))
    assert both(front, prompt=[0], stop=stop)[:2] == ("alpha ", "stop")


def test_a_stop_string_ends_the_request_as_well(fronted):
    front = fronted(letters([f"<{at}>" for at in range(100)]), limits=limits(context=10**6))
    for stream in (False, True):
        made = front.engine.made
        body = {"prompt": [0], "stop": "<3>", "max_tokens": 10**5, "stream": stream}
        assert front.post(PATH, body).status_code == 200
        assert front.engine.made - made < 10**4
    assert front.engine.finished["cancelled"] == 2


def test_what_was_cached_is_told_whatever_ends_an_answer(fronted):
    front = fronted(letters(["A", "b", "c", "d", "<eos>"], eos=[4]))
    front.engine.cached = 7
    for fields, text in (({}, "bcd"), ({"max_tokens": 1}, "b"), ({"stop": "c"}, "b")):
        whole = front.complete([0], **fields)
        options = {"include_usage": True}
        events = front.stream(PATH, prompt=[0], stream_options=options, **fields)
        assert whole["choices"][0]["text"] == text
        for usage in (whole["usage"], events[-1]["usage"]):
            assert usage["prompt_tokens_details"] == {"cached_tokens": 7}


def test_g04_a_character_over_two_tokens(fronted):
    front = fronted(letters(["A", b"\xf0\x9f", b"\x91\x8d", " ok", "<eos>"], eos=[4]))
    events = front.stream(PATH, prompt=[0])
    assert told(events) == ("\U0001f44d ok", "stop")
    assert "\ufffd" not in str(events)


def test_g04_every_cut_of_a_long_sequence(fronted):
    for cut in range(1, len(FACE)):
        front = fronted(letters(["A", FACE[:cut], FACE[cut:], "<eos>"], eos=[3]))
        assert told(front.stream(PATH, prompt=[0])) == (FACE.decode(), "stop")


def test_g05_ends_inside_a_character(fronted):
    front = fronted(letters(["A", b"\xf0\x9f", "<eos>"], eos=[2]))
    assert both(front, prompt=[0], max_tokens=1) == ("\ufffd", "length", 1)
    front = fronted(letters(["A", b"\xff", "b", "<eos>"], eos=[3]))
    assert both(front, prompt=[0]) == ("\ufffdb", "stop", 2)


def test_g06_usage_only_on_request_and_with_no_choices(fronted):
    front = fronted(letters(["A", "b", "c", "d", "e", "<eos>"], eos=[5]))
    plain = front.stream(PATH, prompt=[0])
    assert all(event.get("usage") is None and event["choices"] for event in plain)
    events = front.stream(PATH, prompt=[0], stream_options={"include_usage": True})
    assert [event for event in events if not event["choices"]] == [events[-1]]
    assert all(event["usage"] is None for event in events[:-1])
    usage = events[-1]["usage"]
    counts = [usage[f"{name}_tokens"] for name in ("prompt", "completion", "total")]
    assert counts == [1, 4, 5]


def test_g07_several_choices_in_a_stream(fronted):
    front = fronted()
    fields = {"prompt": [0], "n": 3, "max_tokens": 2}
    events = front.stream(PATH, **fields, stream_options={"include_usage": True})
    assert {event["id"] for event in events} == {events[0]["id"]}
    assert [told(events, index) for index in range(3)] == [("<1><2>", "length")] * 3
    usage = events[-1]["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (1, 6)
    assert [choice["text"] for choice in front.complete(**fields)["choices"]] == ["<1><2>"] * 3
    for n in (0, -1, "2", 1.0, 129):
        refused(front, "n", "invalid_value", n=n)
    assert "it takes 64 sequences" in refused(front, "n", n=64)
    # four run and sixteen wait: each prompt's choices count
    assert "it takes 21 sequences" in refused(front, "n", n=3, prompt=[[0]] * 7)
    assert "it takes 21 sequences" in refused(front, "prompt", prompt=[[0]] * 21)
    assert len(front.complete([[0]] * 10, n=2, max_tokens=1)["choices"]) == 20


def test_g11_logprobs_is_a_number_and_echo_is_honoured(fronted):
    front = fronted()
    [choice] = front.complete([0, 1, 2], max_tokens=1, echo=True, logprobs=1)["choices"]
    logprobs = choice["logprobs"]
    assert logprobs["token_logprobs"] == [None, SUCCESSOR, SUCCESSOR, SUCCESSOR]
    assert logprobs["tokens"] == ["<0>", "<1>", "<2>", "<3>"]
    assert logprobs["text_offset"] == [0, 3, 6, 9]
    assert choice["text"] == "<0><1><2><3>"
    assert logprobs["top_logprobs"][1:] == [{f"<{at}>": SUCCESSOR} for at in (1, 2, 3)]
    [choice] = front.complete([0], max_tokens=2, logprobs=0)["choices"]
    assert choice["logprobs"]["top_logprobs"] == [{"<1>": SUCCESSOR}, {"<2>": SUCCESSOR}]
    for wrong in (True, 6, -1, "1"):
        refused(front, "logprobs", "invalid_value", logprobs=wrong)


def test_g11_a_prompt_nobody_would_say_scores_low(fronted):
    front = fronted()
    [choice] = front.complete([7, 1], max_tokens=1, echo=True, logprobs=2)["choices"]
    assert choice["logprobs"]["token_logprobs"] == [None, OTHER, SUCCESSOR]
    assert choice["logprobs"]["top_logprobs"][1] == {"<8>": SUCCESSOR, "<0>": OTHER, "<1>": OTHER}


def test_g12_max_tokens_zero_missing_null_or_negative(fronted):
    front = fronted(letters(["A", "b", "c", "<eos>"], eos=[3]))
    scored = front.complete([0, 1], max_tokens=0, echo=True, logprobs=1)
    [choice] = scored["choices"]
    assert choice["logprobs"]["token_logprobs"] == [None, SUCCESSOR]
    assert (choice["text"], choice["finish_reason"]) == ("Ab", "length")
    assert scored["usage"]["completion_tokens"] == 0
    [choice] = front.complete([0], max_tokens=0, echo=True, logprobs=1)["choices"]
    assert choice["logprobs"]["token_logprobs"] == [None]
    assert both(front, prompt=[0], max_tokens=0) == ("", "length", 0)
    assert both(front, prompt=[0]) == ("bc", "stop", 2)
    assert both(front, prompt=[0], max_tokens=None) == ("bc", "stop", 2)
    for wrong in (-1, 1.5):
        refused(front, "max_tokens", "invalid_value", max_tokens=wrong)
    assert both(front, prompt=[0], max_tokens=1) == ("b", "length", 1)


def test_g13_a_prompt_longer_than_the_context(fronted):
    front = fronted(limits=limits(context=8))
    code = "context_length_exceeded"
    assert both(front, prompt=[0] * 7, max_tokens=1) == ("<1>", "length", 1)
    for size, most in ((8, 1), (9, 1), (7, 2), (9, 0)):
        message = refused(front, code=code, prompt=[0] * size, max_tokens=most)
        assert "context holds 8 tokens" in message
        assert f"the prompt has {size}" in message
    assert "too many for a context of 8" in refused(front, code=code, prompt="a" * 1000)
    response = front.post("/v1/chat/completions", {"messages": [user("a" * 1000)]})
    assert response.status_code == 400
    assert "too many for a context of 8" in response.json()["error"]["message"]
    # of an answer whose length nobody says, one token has to fit
    assert "and 1 more" in refused(front, code=code, prompt=[0] * 8)
    chat = fronted(limits=limits(context=len("[user]a[answer]")))
    response = chat.post("/v1/chat/completions", {"messages": [user("a")]})
    assert "the prompt has 15 and 1 more" in response.json()["error"]["message"]
    # as much as fits where nobody says how much
    assert both(front, prompt=[0] * 6) == ("<1><2>", "length", 2)
    # one that fills it can be scored
    [choice] = front.complete([*range(8)], max_tokens=0, echo=True, logprobs=0)["choices"]
    assert choice["logprobs"]["token_logprobs"] == [None, *[SUCCESSOR] * 7]


def test_g15_absurd_max_tokens(fronted):
    front = fronted(limits=limits(context=16))
    message = refused(front, prompt=[0], max_tokens=100_000_000)
    assert "context holds 16" in message
    refused(front, prompt=[0], max_tokens=10**30)


def test_g26_bos_is_added_once_to_a_text(fronted):
    vocabulary = letters(["<1>", "<2>"], special=["<bos>"], bos=258)
    from tokenizers.processors import TemplateProcessing

    bos = TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 258)])
    vocabulary._backend.post_processor = bos
    front = fronted(
        vocabulary,
        template="{{ bos_token }}{{ messages[0].content }}",
        tokens={"bos_token": "<bos>"},
    )
    [plain] = front.complete("hi", max_tokens=1, return_token_ids=True)["choices"]
    assert plain["prompt_token_ids"].count(258) == 1
    # spelled out by a user it is text
    whole = front.complete("<bos>hi", max_tokens=1, return_token_ids=True)
    assert whole["choices"][0]["prompt_token_ids"].count(258) == 1
    assert whole["usage"]["prompt_tokens"] == 1 + len("<bos>hi")
    chat = front.chat("hi", max_tokens=1, return_token_ids=True)
    assert chat["choices"][0]["prompt_token_ids"].count(258) == 1
    assert chat["usage"]["prompt_tokens"] == 3


def test_g28_several_end_tokens(fronted):
    front = fronted(letters([f"<{at}>" for at in range(10)], eos=[9, 4]))
    assert both(front, prompt=[0]) == ("<1><2><3>", "stop", 3)
    text = ("<1><2><3><4><5>", "length", 5)
    assert both(front, prompt=[0], ignore_eos=True, max_tokens=5) == text
    assert both(front, prompt=[0], stop_token_ids=[2]) == ("<1>", "stop", 1)


def test_g28_both_files_of_a_checkpoint_name_ends(fronted, tmp_path):
    for given in ([9, 4], 4):
        folder = write_succ(tmp_path / str(given), list("abcdefghijkl"), eos=[9])
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": given}))
        opened = open_checkpoint(str(folder))
        front = fronted(opened.tokenizer)
        assert both(front, prompt=[0]) == ("bcd", "stop", 3)
        assert set(opened.tokenizer.eos) == {4, 9}
        opened.close()


@pytest.mark.parametrize(("most", "finish"), [(2, "length"), (4, "length"), (5, "stop")])
def test_g33_finish_reason_tells_length_from_stop(fronted, most, finish):
    front = fronted(letters(["A", "b", "c", "d", "e", "<eos>"], eos=[5]))
    assert both(front, prompt=[0], max_tokens=most)[1] == finish
    vocabulary, script = saying(["b", "c", "d", "e"])
    front = fronted(vocabulary, script)
    assert front.chat(max_tokens=most)["choices"][0]["finish_reason"] == finish
    assert told(front.stream("/v1/chat/completions", max_tokens=most))[1] == finish


def test_prompts_of_any_kind_each_get_their_choices(fronted):
    front = fronted()
    whole = front.complete([[0], [3, 4]], max_tokens=2, n=2)
    assert [(c["index"], c["text"]) for c in whole["choices"]] == [
        (0, "<1><2>"), (1, "<1><2>"), (2, "<5><6>"), (3, "<5><6>"),
    ]  # fmt: skip
    assert whole["usage"]["prompt_tokens"] == 3
    assert whole["usage"]["completion_tokens"] == 8
    texts = front.complete(["a", "bc"], max_tokens=1, echo=True)["choices"]
    assert [choice["text"][:-1] for choice in texts] == ["a", "bc"]
    for wrong in ([], [[]], ["a", 1], [[1], 2], 7, None, {}, [[0, 400]], [-1], [True], ""):
        refused(front, prompt=wrong)


def test_token_ids_come_back_on_request(fronted):
    front = fronted()
    [choice] = front.complete([0, 1], max_tokens=2, return_token_ids=True)["choices"]
    assert (choice["prompt_token_ids"], choice["token_ids"]) == ([0, 1], [2, 3])
    events = front.stream(PATH, prompt=[0, 1], max_tokens=2, return_token_ids=True)
    choices = [event["choices"][0] for event in events]
    assert [c.get("prompt_token_ids") for c in choices] == [[0, 1]] + [None] * (len(choices) - 1)
    assert [token for choice in choices for token in choice["token_ids"]] == [2, 3]


def test_a_character_that_the_prompt_began_is_told_whole(fronted):
    front = fronted(letters(["A", b"\xf0\x9f", b"\x91\x8d", "b", "<eos>"], eos=[4]))
    assert both(front, prompt=[0, 1]) == ("\U0001f44db", "stop", 2)


def test_tokens_of_half_characters_have_names_of_their_own(fronted):
    front = fronted(letters(["A", b"\xf0\x9f", b"\x91\x8d", "<eos>"], eos=[3]))
    [choice] = front.complete([0], logprobs=1)["choices"]
    assert choice["logprobs"]["tokens"] == ["bytes:\\xf0\\x9f", "bytes:\\x91\\x8d"]
    assert choice["logprobs"]["text_offset"] == [0, 0]
