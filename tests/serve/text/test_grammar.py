"""Grammars over a vocabulary of single bytes: what they let through, and what they refuse."""

import json

import numpy as np
import pytest

from bedstone.errors import CallerError
from bedstone.serve.text.constraint import Forced, Grammars
from bedstone.serve.text.grammar import (
    after_thought,
    calls_grammar,
    json_grammar,
    regex_grammar,
)
from bedstone.serve.text.parts import Arguments, Called
from bedstone.serve.text.tools.table import WAYS, WRITINGS
from scripted import letters

VOCAB = 300
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"$ref": "#/$defs/Age"}},
    "required": ["name", "age"],
    "additionalProperties": False,
    "$defs": {"Age": {"type": "integer"}},
}


@pytest.fixture(scope="module")
def vocabulary():
    return letters([], special=["<eos>", "<end>", "<pad>"], eos=[256, 257])


@pytest.fixture(scope="module")
def grammars(vocabulary):
    return Grammars(vocabulary, VOCAB, vocabulary.eos)


def allowed(constraint):
    words = constraint.allowed()
    assert (words.dtype, len(words)) == (np.uint32, 10)
    return {at for at in range(len(words) * 32) if words[at // 32] >> (at % 32) & 1}


def taken(vocabulary, constraint, text):
    """How many characters of an ASCII text it lets through, and whether it may end there."""
    for at, token in enumerate(vocabulary.encode(text, special=False)):
        if token not in allowed(constraint):
            return at, 256 in allowed(constraint)
        constraint.accept(token)
    return len(text), 256 in allowed(constraint)


@pytest.mark.parametrize(
    ("grammar", "text", "found"),
    [
        (json_grammar(PERSON), '{"name": "Ada", "age": 36}', (26, True)),
        (json_grammar(PERSON), '{"name": "Ada"}', (14, False)),
        (json_grammar({"type": "object"}), '{"a": [1, {"b": null}]}', (23, True)),
        (json_grammar({"type": "object"}), "[1]", (0, False)),
        (json_grammar({"type": "integer"}), "12", (2, True)),
        (regex_grammar("(yes|no)"), "yes", (3, True)),
        (regex_grammar("(yes|no)"), "yep", (2, False)),
        (regex_grammar(r"a/b[/]\/\\\n"), "a/b//\\\n", (7, True)),
        (regex_grammar('"x"\n'), '"x"\n', (4, True)),
        (after_thought(regex_grammar("ok"), thinking=True), "hm </think>\n\nok", (15, True)),
        (after_thought(regex_grammar("ok"), thinking=False), "<think>a</think>ok", (18, True)),
        (after_thought(regex_grammar("ok"), thinking=False), "ok", (2, True)),
    ],
)
def test_a_grammar_lets_its_texts_through(vocabulary, grammars, grammar, text, found):
    [constraint] = grammars.compile(grammar, 1)
    assert taken(vocabulary, constraint, text) == found


def test_an_answer_that_may_end_may_end_in_any_way(grammars):
    [constraint] = grammars.compile(regex_grammar("a+"), 1)
    assert allowed(constraint) & {256, 257, 258} == set()
    assert constraint.accept(ord("a") - 33)
    assert allowed(constraint) >= {256, 257}
    assert 258 not in allowed(constraint)
    assert not constraint.accept(257)


@pytest.mark.parametrize("vocab", [256, VOCAB])
def test_a_vocabulary_without_an_end_may_have_ids_without_text(vocab):
    """An answer that may end has a token for it all the same, and none that is not there."""
    bytes_only = letters([])
    [constraint] = Grammars(bytes_only, vocab, ()).compile(regex_grammar("a+"), 1)
    for token in bytes_only.encode("aaa", special=False):
        assert constraint.accept(token)
        words = constraint.allowed()
        assert words[token // 32] >> (token % 32) & 1
        assert len(words) == -(-vocab // 32)


def test_a_grammar_that_is_over_says_so(vocabulary, grammars):
    one, other = grammars.compile(regex_grammar("ab"), 2)
    a, b = vocabulary.encode("ab", special=False)
    assert one.accept(a)
    assert not one.accept(b)
    assert allowed(one) == {256, 257}
    assert allowed(other) == {a}


@pytest.mark.parametrize(
    "grammar",
    [
        regex_grammar("((("),
        json_grammar({"type": "word"}),
        json_grammar([1]),
        json_grammar({"$ref": "https://example.com/schema"}),
        json_grammar(
            {
                "type": "object",
                "properties": {
                    str(n): {"type": "string", "pattern": "(a|b){500}"} for n in range(3000)
                },
                "minProperties": 9,
            }
        ),
        json_grammar({"type": "string", "not": {"const": "a"}}),
    ],
)
def test_what_is_no_grammar_or_too_much_of_one_is_refused(grammars, grammar):
    with pytest.raises(CallerError, match="the grammar cannot be used"):
        grammars.compile(grammar, 1)


def test_a_form_that_no_text_has_is_refused_in_a_line(grammars):
    with pytest.raises(CallerError, match=r"\Athe grammar cannot be used: no text fits it\Z"):
        grammars.compile(json_grammar({"$ref": "#"}), 1)


WIDE = {"type": "object", "properties": {str(n): {"type": "string"} for n in range(1000)}}


def test_a_grammar_that_grows_too_large_on_its_way_ends_no_answer(vocabulary, grammars):
    [constraint] = grammars.compile(json_grammar({"type": "array", "items": WIDE}), 1)
    for each in vocabulary.encode("[", special=False):
        assert constraint.accept(each)
    [brace] = vocabulary.encode("{", special=False)
    assert brace in allowed(constraint)
    with pytest.raises(CallerError, match="the grammar cannot be used: Parser Error"):
        constraint.accept(brace)
    with pytest.raises(CallerError, match="the grammar cannot be used: Parser Error"):
        constraint.allowed()


CALLS = {
    "hermes": '<tool_call>\n{"name": "f", "arguments": {"name": "A", "age": 3}}\n</tool_call>',
    "llama3": '{"name": "f", "parameters": {"name": "A", "age": 3}}',
    "qwen3_coder": "<tool_call>\n<function=f>\n<parameter=name>\nA\n</parameter>\n"
    "<parameter=age>\n3\n</parameter>\n</function>\n</tool_call>",
}


@pytest.mark.parametrize("way", WAYS)
def test_calls_are_held_to_the_tools_and_read_back(vocabulary, grammars, way):
    schemas = {"g": None, "f": PERSON}
    text = CALLS[way]
    one, several = (
        grammars.compile(calls_grammar(way, schemas, several=several), 1)[0]
        for several in (False, True)
    )
    assert taken(vocabulary, one, text) == (len(text), True)
    assert allowed(one) == {256, 257}
    assert taken(vocabulary, several, text) == (len(text), True)
    assert allowed(several) > {256, 257}
    parts = WRITINGS[way].reader(schemas).add(text)
    assert parts[0] == Called(0, "f")
    arguments = "".join(part.text for part in parts if isinstance(part, Arguments))
    assert json.loads(arguments) == {"name": "A", "age": 3}
    [other] = grammars.compile(calls_grammar(way, {"g": None}, several=False), 1)
    assert taken(vocabulary, other, text)[0] < len(text)


@pytest.mark.parametrize("way", WAYS)
def test_a_parameter_of_any_value_takes_any(vocabulary, grammars, way):
    schemas = {"f": {"properties": {"name": True, "age": {}}, "required": ["name", "age"]}}
    text = CALLS[way].replace("\nA\n", '\n"A"\n')
    [any_value] = grammars.compile(calls_grammar(way, schemas, several=False), 1)
    assert taken(vocabulary, any_value, text) == (len(text), True)


def test_forced_tokens_come_in_turn():
    constraint = Forced([7, 40], VOCAB)
    assert allowed(constraint) == {7}
    assert constraint.accept(7)
    assert allowed(constraint) == {40}
    assert not constraint.accept(40)
    assert allowed(constraint) == set()
