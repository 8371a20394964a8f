"""Strict JSON: what is refused, where, and that hostile text costs little."""

import math
import time

import pytest

from bedstone.spec.fault import Fault, ParseError
from bedstone.spec.text import parse_json, require_json


def refused(text: bytes | str) -> Fault:
    with pytest.raises(ParseError) as caught:
        parse_json(text)
    return caught.value.fault


def test_numbers_are_integers_only_where_they_fit_64_bits() -> None:
    literals = "[0, 18446744073709551615, -9223372036854775808, 18446744073709551616, 1e2, 8.0]"
    values = parse_json(literals)
    assert values == [0, 2**64 - 1, -(2**63), float(2**64), 100.0, 8.0]
    assert isinstance(values, list)
    assert [type(v) for v in values] == [int, int, int, float, float, float]


def test_below_i64_is_a_double() -> None:
    assert type(parse_json(str(-(2**63) - 1))) is float


def test_minus_zero_is_a_double() -> None:
    value = parse_json("-0")
    assert type(value) is float
    assert math.copysign(1, value) == -1


@pytest.mark.parametrize(
    ("text", "rule", "place"),
    [
        ("", "P1", "line 1 column 1"),
        ("\ufeff{}", "P1", "line 1 column 1"),
        ("{} x", "P1", "line 1 column 4"),
        ('{\n "a": 1,\n}', "P1", "line"),
        ("[1,]", "P1", "line 1 column"),
        ("[01]", "P1", "line 1 column 3"),
        ("[1.]", "P1", "line 1 column 3"),
        ("[.5]", "P1", "line 1 column 2"),
        ("[+1]", "P1", "line 1 column 2"),
        ("\x0c1", "P1", "line 1 column 1"),
        ("{1: 2}", "P1", "line 1 column 2"),
        ('"a\tb"', "P1", "line 1 column 3"),
        ('"a', "P1", "line 1 column 1"),
        ('{"1e400": "NaN",\n "x": [1e400]}', "P1", "line 2 column 8"),
        ('["NaN", NaN]', "P1", "line 1 column 9"),
        ("[-Infinity]", "P1", "line 1 column 2"),
        ('"\\ud800"', "P1", "line 1 column 2"),
        ('"\\udc00\\ud800"', "P1", "line 1 column 2"),
        ('"\\ud83d\\ud83d\\ude00"', "P1", "line 1 column 2"),
        ('{"a": {"b": 1},\n "b": {"c": 1, "c": 2}}', "P2", "line 2 column 16"),
        ('{"a": 1, "\\u0061": 2}', "P2", "line 1 column 10"),
        ('[{"x": "{"}, {"x": "}", "y": 1, "x" : 0}]', "P2", "line 1 column 33"),
    ],
)
def test_refused_with_its_place(text: str, rule: str, place: str) -> None:
    fault = refused(text)
    assert fault.rule == rule
    assert place in fault.message


@pytest.mark.parametrize("text", [b'"\xff"', b'"\xed\xa0\x80"', "[1]".encode("utf-16"), '"\ud800"'])
def test_what_is_not_utf8_is_refused(text: bytes | str) -> None:
    assert "not UTF-8" in refused(text).message


@pytest.mark.parametrize(
    ("text", "value"), [('"\\ud83d\\ude00"', "😀"), ('"\\\\ud800"', "\\ud800"), ('"\\u0000"', "\0")]
)
def test_escapes_that_are_sound_are_read(text: str, value: str) -> None:
    assert parse_json(text) == value


@pytest.mark.parametrize("bracket", ["[]", "{}"])
def test_127_containers_may_nest_and_no_more(bracket: str) -> None:
    opening = "[" if bracket == "[]" else '{"a":'
    nested = bracket
    for _ in range(126):
        nested = opening + nested + bracket[1]
    parse_json(nested)
    assert "127" in refused(opening + nested + bracket[1]).message


MILLION = 10**6
HOSTILE = {
    "nested arrays": lambda: "[" * MILLION,
    "nested objects": lambda: '{"a":' * MILLION,
    "closed nested arrays": lambda: "[" * MILLION + "]" * MILLION,
    "an integer of a million digits": lambda: "[" + "1" * MILLION + "]",
    "a negative one": lambda: "[-" + "9" * MILLION + "]",
    "an exponent of a million digits": lambda: "[1e" + "9" * MILLION + "]",
    "an unterminated string": lambda: '"' + "a" * (100 * MILLION),
    "a million keys, one twice": lambda: (
        "{" + ",".join(f'"k{i}":0' for i in range(MILLION)) + ',"k0":0}'
    ),
    "escapes before a repeated key": lambda: '{"a":"' + "\\n" * MILLION + '","a":0}',
    "a million lone surrogates": lambda: '"' + "\\ud800" * MILLION + '"',
    "a repeated key of many characters": lambda: f'{{"{"k" * MILLION}":0,"{"k" * MILLION}":0}}',
}


@pytest.mark.slow
@pytest.mark.parametrize("attack", HOSTILE)
def test_hostile_text_is_refused_soon_and_in_few_words(attack: str) -> None:
    text = HOSTILE[attack]()
    start = time.process_time()
    fault = refused(text)
    assert time.process_time() - start < 5
    assert len(fault.message) < 300


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0." + "1" * MILLION, 0.1111111111111111),
        ("0." + "0" * MILLION + "1", 0.0),
        ("1e-" + "9" * MILLION, 0.0),
        ("9" * 300, 1e300),
    ],
    ids=["long fraction", "underflow", "tiny", "long integer"],
)
def test_long_literals_that_a_double_holds_are_read(text: str, value: float) -> None:
    assert parse_json(text) == value


@pytest.mark.parametrize("value", [{1: 2}, {"a": [{None: 1}]}, [(1, 2)], {"a": {1, 2}}, [b"x"]])
def test_what_no_json_text_gives_is_not_a_json_value(value: object) -> None:
    with pytest.raises(ParseError, match="P1"):
        require_json(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(ParseError, match="127"):
        require_json(value)
