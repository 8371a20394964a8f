"""Answers from tokens: stop strings, characters and reasoning over any cut."""

import codecs

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from bedstone.checkpoint.tokenizer import Detokenizer, Tokenizer
from bedstone.serve.requests import Token
from bedstone.serve.text.answer import Answer
from bedstone.serve.text.parts import Arguments, Called, Plain, Said, Thought, joined
from bedstone.serve.text.reasoning import Reasoning, opens_thought
from bedstone.serve.text.stops import StopStrings
from bedstone.serve.text.tools.hermes import Hermes
from scripted import letters

FACE = "\U0001f468\U0001f3fd\u200d\u2640\ufe0f".encode()


def answered(pieces, *, stops=(), reader=None, reason="stop", echo=0):
    """The parts, entries, finish and count of an answer of those pieces, and its deltas."""
    vocabulary = letters(pieces)
    answer = Answer(Detokenizer(vocabulary), stops, reader or Plain())
    deltas = []
    if echo:
        deltas.append(answer.echo([Token("r", at) for at in range(echo)]))
    for at in range(echo, len(pieces)):
        deltas.append(answer.add(Token("r", at, -1.0 - at)))
        if answer.stopped:
            break
    deltas.append(answer.finish(reason))
    finishes = [delta.finish for delta in deltas if delta.finish]
    assert len(finishes) == 1
    return deltas, finishes[0], answer.made


def text_of(deltas):
    parts = [part for delta in deltas for part in delta.parts]
    return "".join(part.text for part in parts if isinstance(part, Said))


def entries_of(deltas):
    return [entry for delta in deltas for entry in delta.entries]


def test_g01_stop_string_split_over_two_chunks():
    pieces = ["Hi", "\nUser", ":", " more"]
    deltas, finish, made = answered(pieces, stops=["\nUser:"])
    assert (text_of(deltas), finish, made) == ("Hi", "stop", 3)
    assert [entry.token for entry in entries_of(deltas)] == [0]
    # what is held back at the end is told after all
    for stop in ("\nUserX", "more!"):
        deltas, finish, made = answered(pieces, stops=[stop])
        assert (text_of(deltas), finish, made) == ("Hi\nUser: more", "stop", 4)


@pytest.mark.parametrize("stops", [["delta", "gamma"], ["gamma delta", "gamma"], ["ma", "gamma"]])
def test_g02_the_stop_string_that_is_whole_first_ends_the_text(stops):
    """Neither its place in the list counts nor where tokens cut."""
    text = "alpha beta gamma delta"
    for pieces in ([text], [text[:9], text[9:]], list(text)):
        deltas, finish, _ = answered(pieces, stops=stops)
        assert (text_of(deltas), finish) == ("alpha beta ", "stop")


@pytest.mark.parametrize("stops", [["beta gamma"], ["gamma", "beta"]])
def test_g02_stop_string_inside_a_token(stops):
    deltas, finish, _ = answered(["alpha", " beta g", "amma delta", " x"], stops=stops)
    assert (text_of(deltas), finish) == ("alpha ", "stop")
    assert [entry.token for entry in entries_of(deltas)] == [0]


def test_g04_a_character_over_two_tokens():
    deltas, _, _ = answered([b"\xf0\x9f", b"\x91\x8d", " ok"])
    assert text_of(deltas) == "\U0001f44d ok"
    assert not any("\ufffd" in text_of([delta]) for delta in deltas)


@pytest.mark.parametrize("cut", range(1, len(FACE)))
def test_g04_a_long_sequence_cut_anywhere(cut):
    deltas, _, _ = answered([FACE[:cut], FACE[cut:]])
    assert text_of(deltas) == FACE.decode()
    assert not any("\ufffd" in text_of([delta]) for delta in deltas)


def test_g05_ends_inside_a_character():
    deltas, finish, _ = answered([b"\xf0\x9f"], reason="length")
    assert (text_of(deltas), finish) == ("\ufffd", "length")
    assert [entry.token for entry in entries_of(deltas)] == [0]


def test_g05_bytes_that_are_no_character_do_not_wait():
    deltas, _, _ = answered([b"\xff", "b"])
    assert text_of(deltas) == "\ufffdb"
    assert text_of(deltas[:2]) == "\ufffdb"


def test_g25_a_stop_string_while_a_parser_holds_text():
    deltas, finish, _ = answered(["price <to", " ST", "OP"], stops=["STOP"], reader=Hermes())
    assert (text_of(deltas), finish) == ("price <to ", "stop")


def test_a_stop_string_is_not_looked_for_in_the_echo():
    deltas, finish, made = answered(["STOP", " a", "ST", "OP"], stops=["STOP"], echo=1)
    assert (text_of(deltas), finish, made) == ("STOP a", "stop", 3)
    assert [entry.offset for entry in entries_of(deltas)] == [0, 4]


def test_an_answer_goes_on_from_its_prompt(spaced):
    def text(*, follow):
        answer = Answer(Detokenizer(spaced), (), Plain())
        if follow:
            answer.follow([0])
        return text_of([answer.add(Token("r", 1)), answer.finish("stop")])

    assert (text(follow=True), text(follow=False)) == (" b", "b")


@pytest.fixture
def spaced():
    """A vocabulary whose encoder begins every text with a space of its own."""
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel({"▁a": 0, "▁b": 1}, ""))
    backend.decoder = tokenizers.decoders.Metaspace()
    return Tokenizer(backend, None, ())


def test_entries_tell_where_their_text_begins():
    deltas, _, _ = answered(["a", b"\xf0\x9f", b"\x91\x8d", "bc", "d"])
    entries = entries_of(deltas)
    assert [entry.offset for entry in entries] == [0, 1, 1, 2, 4]
    assert [entry.logprob for entry in entries] == [-1.0 - at for at in range(5)]


def test_a_token_is_told_no_sooner_than_its_text():
    deltas, _, _ = answered(["a", "b", "c", "d"], stops=["bcX"])
    assert [[entry.token for entry in delta.entries] for delta in deltas] == [
        [0], [], [], [1, 2, 3], [],
    ]  # fmt: skip
    deltas, _, _ = answered(["a", "b", "cX", "d"], stops=["bcX"])
    assert [entry.token for entry in entries_of(deltas)] == [0]


def test_a_whole_call_makes_the_finish_tool_calls_and_a_cut_one_does_not():
    call = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
    _, finish, _ = answered(list(call), reader=Hermes())
    assert finish == "tool_calls"
    _, finish, _ = answered(list(call[:40]), reader=Hermes(), reason="length")
    assert finish == "length"
    _, finish, _ = answered(list(call[:40]), reader=Hermes())
    assert finish == "stop"


BYTES = st.sampled_from([*b"abST", *"é👍".encode(), 0xFF, *b"\n<"])


@settings(max_examples=300)
@given(
    data=st.lists(BYTES, max_size=24).map(bytes),
    cuts=st.lists(st.integers(1, 5), max_size=24),
    stops=st.lists(
        st.sampled_from(["ST", "STS", "aST", "é", "b<", "T\n", "a", "\ufffdb"]), max_size=3
    ),
)
def test_any_cut_into_tokens_gives_the_same_answer(data, cuts, stops):
    pieces, at = [], 0
    for size in [*cuts, len(data)]:
        pieces += [data[at : at + size]] if data[at : at + size] else []
        at += size
    one, finish, _ = answered([bytes([byte]) for byte in data], stops=stops)
    other, same, _ = answered(pieces, stops=stops)
    assert (text_of(other), same) == (text_of(one), finish)
    text = codecs.decode(data, "utf-8", "replace")
    if not stops:
        assert text_of(one) == text
    assert not any(stop in text_of(one) for stop in stops)
    assert text.startswith(text_of(one))


@given(
    text=st.text(alphabet="abc", max_size=20),
    stops=st.lists(st.text(alphabet="abc", min_size=1, max_size=4), max_size=4),
    size=st.integers(1, 7),
)
def test_stop_strings_end_the_text_where_the_first_is_whole(text, stops, size):
    stop = StopStrings(stops)
    out = "".join(stop.add(text[at : at + size]) for at in range(0, len(text), size))
    out += stop.finish()
    ends = [text.find(each) + len(each) for each in stops if each in text]
    if not ends:
        assert (out, stop.stopped) == (text, False)
        return
    starts = [min(ends) - len(each) for each in stops if text[: min(ends)].endswith(each)]
    assert (out, stop.stopped) == (text[: min(starts)], True)


def reasoned(chunks, *, thinking=False, cut=False):
    reader = Reasoning(Plain(), thinking=thinking)
    parts = [part for chunk in chunks for part in reader.add(chunk)]
    return joined(parts + reader.finish(cut=cut))


@pytest.mark.parametrize(
    ("text", "thinking", "parts"),
    [
        ("<think>\nso it is \n</think>\n\nYes. ", False, [Thought("so it is"), Said("Yes. ")]),
        ("so</think>Yes", True, [Thought("so"), Said("Yes")]),
        ("<think></think>Yes", False, [Said("Yes")]),
        ("<think>so", False, [Thought("so")]),
        ("no <think>x</think>", False, [Said("no <think>x</think>")]),
        ("<thin", False, [Said("<thin")]),
        ("\n\n", False, [Said("\n\n")]),
        ("a</th", True, [Thought("a</th")]),
        ("", True, []),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_reasoning_is_told_apart(text, thinking, parts, size):
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    assert reasoned(chunks, thinking=thinking) == parts


@settings(max_examples=200)
@given(
    text=st.lists(
        st.sampled_from(["<think>", "</think>", "a", " ", "\n", "<", "think>", "</"]), max_size=10
    ).map("".join),
    size=st.integers(1, 9),
    thinking=st.booleans(),
)
def test_reasoning_is_the_same_however_it_is_cut(text, size, thinking):
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    assert reasoned(chunks, thinking=thinking) == reasoned([text], thinking=thinking)


def test_thoughts_and_what_is_said_are_told_as_they_come():
    reader = Reasoning(Plain(), thinking=False)
    told = [reader.add(text) for text in ("<think>", " so", " it", " </thin", "k>\n", "Yes", ".")]
    so, it, yes, dot = Thought("so"), Thought(" it"), Said("Yes"), Said(".")
    assert told == [[], [so], [it], [], [], [yes], [dot]]
    assert reader.finish(cut=False) == []


def test_calls_come_after_a_thought():
    text = 'a</think>\n<tool_call>{"name": "f"}</tool_call>'
    reader = Reasoning(Hermes(), thinking=True)
    parts = [part for char in text for part in reader.add(char)] + reader.finish(cut=False)
    assert joined(parts) == [Thought("a"), Called(0, "f"), Arguments(0, "{}")]
    assert reader.calls == 1


def test_a_prompt_may_open_the_thought():
    assert opens_thought("<|im_start|>assistant\n<think>\n")
    assert not opens_thought("<think>\n\n</think>\n\n")
