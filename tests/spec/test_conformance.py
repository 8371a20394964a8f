"""Parsing against the reference reader's stored verdicts, and our faults case by case."""

import json
import re
from pathlib import Path

import pytest

from bedstone.spec.codec import parse, parse_value, serialize
from bedstone.spec.fault import ParseError
from conformance_cases import ACCEPTED, Case, accepted_text, cases, normalized_text

FAULTS = json.loads((Path(__file__).parents[1] / "golden/parse_faults.json").read_text())
OBJECTS = [name for name in ACCEPTED if name != "20_positional"]

STRICTER = {
    "P4/unknown-key-in-expr-is-ignored",
    "P4/expr-with-two-operators-takes-the-first",
    "P9/arg-f32-overflow-becomes-infinity",
    "P11/var-as-array",
    "P11/kind-as-map",
}
"""Cases the reference accepts by accident and we refuse."""

AFTER_PARSING = re.compile(
    r"(op|program|buffer|state|var|module|cut|topology)\b.*[:`]|\w+ buffer `"
)
"""How the reference's messages of verification begin; those of parsing never do."""


def parsing_cases() -> list[Case]:
    return [case for case in cases() if re.fullmatch(r"[PC]\d+", case.rule)]


def other_cases() -> list[Case]:
    return [case for case in cases() if not re.fullmatch(r"[PC]\d+", case.rule)]


@pytest.mark.parametrize("case", parsing_cases(), ids=lambda case: case.name)
def test_parsing_case(case: Case) -> None:
    verified = bool(case.messages) and bool(AFTER_PARSING.match(case.messages[0]))
    if (case.accepted or case.newer or verified) and case.name not in STRICTER:
        parse(case.text)
        return
    with pytest.raises(ParseError) as caught:
        parse(case.text)
    fault = caught.value.fault
    assert [fault.rule, fault.path, list(fault.objects)] == FAULTS[case.name]
    assert fault.message in str(caught.value)


def test_every_golden_fault_has_its_case() -> None:
    assert FAULTS.keys() <= {case.name for case in parsing_cases()}


@pytest.mark.parametrize("case", other_cases(), ids=lambda case: case.name)
def test_a_manifest_that_breaks_a_rule_parses_and_serializes_stably(case: Case) -> None:
    manifest = parse(case.text)
    text = serialize(manifest)
    assert parse(text) == manifest
    assert serialize(parse(text)) == text


@pytest.mark.parametrize("name", OBJECTS)
def test_serialized_as_the_reference_does(name: str) -> None:
    manifest = parse(accepted_text(name))
    assert serialize(manifest) == normalized_text(name)
    assert parse(normalized_text(name)) == manifest


@pytest.mark.parametrize("name", OBJECTS)
def test_a_decoded_value_parses_as_its_text(name: str) -> None:
    assert parse_value(json.loads(accepted_text(name))) == parse(accepted_text(name))


def test_positional_arrays_are_refused() -> None:
    with pytest.raises(ParseError) as caught:
        parse(accepted_text("20_positional"))
    assert caught.value.fault.rule == "P11"


def test_constants_and_their_numbers_serialize_alike() -> None:
    named, literal = (parse(accepted_text(n)) for n in ("14_constants", "15_constants_resolved"))
    assert serialize(named) == serialize(literal)
