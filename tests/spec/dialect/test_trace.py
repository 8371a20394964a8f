import json
from dataclasses import replace

import pytest

from bedstone.spec.dialect.document import emit_line, parse_document
from bedstone.spec.dialect.trace import emit_trace, parse_trace
from bedstone.spec.dialect.workload import emit_workload, parse_workload
from bedstone.spec.trace import Failed, Passed
from bedstone.spec.workload import Custom, Random, Scalar, Stored, Tolerance


def value(**evaluation):
    made = {
        "status": "PASSED",
        "environment": {"hardware": "H200", "libs": {"torch": "2.13"}},
        "timestamp": "2026-11-29T00:00:00",
        "log": "",
        "correctness": {"max_relative_error": 0.0, "max_absolute_error": 1e-3},
        "performance": {"latency_ms": 1.0, "reference_latency_ms": 2.0, "speedup_factor": 2.0},
        **evaluation,
    }
    return {
        "definition": "d",
        "solution": "s",
        "workload": {
            "uuid": "u",
            "axes": {"n": 4},
            "inputs": {
                "x": {"type": "random", "seed": 3},
                "i": {"type": "safetensors", "path": "a.safetensors", "tensor_key": "i"},
                "eps": {"type": "scalar", "value": 1e-5},
                "c": {"type": "custom"},
            },
        },
        "evaluation": {k: v for k, v in made.items() if v is not ...},
    }


def test_a_trace_is_written_back_as_it_was_read():
    given = value(replayed=True)
    reading = parse_trace(given)
    assert reading.findings == ()
    assert emit_trace(reading.value, "sol").value == given
    assert reading.value.workload.inputs == {
        "x": Random({"seed": 3}),
        "i": Stored("a.safetensors", "i"),
        "eps": Scalar(1e-5),
        "c": Custom(),
    }
    assert reading.value.passed


@pytest.mark.parametrize(
    ("evaluation", "message"),
    [
        ({"correctness": ...}, "/evaluation/correctness: expected where the status is `PASSED`"),
        ({"performance": ...}, "/evaluation/performance: expected where the status is `PASSED`"),
        ({"status": "TIMEOUT", "correctness": ...}, "/evaluation/performance: not expected"),
        ({"status": "INCORRECT_NUMERICAL"}, "/evaluation/performance: not expected"),
        ({"status": "FINE"}, "is no status"),
        ({"environment": {}}, "expected the device's name"),
        ({"timestamp": ""}, "/evaluation/timestamp: expected a string"),
    ],
)
def test_an_outcome_has_the_parts_its_status_asks_for(evaluation, message):
    assert any(message in str(finding) for finding in parse_trace(value(**evaluation)).findings)


def test_half_a_trace_is_refused():
    for half in ({"solution": None}, {"evaluation": None}):
        assert not parse_trace(value() | half).usable


def test_numbers_json_has_no_word_for_travel_as_strings():
    errors = {"max_relative_error": "Infinity", "max_absolute_error": "NaN"}
    given = value(status="INCORRECT_NUMERICAL", performance=..., correctness=errors)
    trace = parse_trace(given).require("trace")
    assert trace.evaluation.outcome.correctness.max_relative_error == float("inf")
    written = emit_trace(trace, "sol").value
    assert written == given
    json.loads(emit_line(written), parse_constant=pytest.fail)


@pytest.mark.parametrize("status", ["REWARD_HACK", "INVALID_REFERENCE"])
def test_an_outcome_others_have_no_name_for_is_an_error_to_them(status):
    given = value(status=status, correctness=..., performance=...)
    trace = parse_trace(given).require("trace")
    written = emit_trace(trace).value
    assert written["evaluation"]["status"] == "RUNTIME_ERROR"
    again = parse_trace(written).require("trace")
    assert again.evaluation.outcome == Failed(status)
    assert again == trace


def test_how_it_was_measured_travels_along():
    trace = parse_trace(value()).require("trace")
    record = {"seed": 3, "timing": {"method": "wall clock", "p99": None}}
    trace = replace(trace, evaluation=replace(trace.evaluation, record=record))
    again = parse_trace(emit_trace(trace).value).require("trace")
    assert again == trace
    assert isinstance(again.evaluation.outcome, Passed)


def test_a_bare_workload_is_a_trace_of_the_definition_it_is_filed_under():
    bare = {"uuid": "u", "axes": {"n": 4}, "inputs": {"x": {"type": "custom"}}}
    reading = parse_trace(bare, "d")
    assert (reading.dialect, reading.usable) == ("sol", True)
    assert reading.value.definition == "d"
    assert emit_trace(reading.value, "sol").value == bare
    assert emit_trace(reading.value, "fib").value["workload"] == bare
    assert not parse_document(bare).usable


def test_a_workloads_tolerance_is_read_and_written():
    tolerance = {"max_atol": 0.1, "required_matched_ratio": 0.9, "allow_negative_inf": True}
    given = {"uuid": "u", "axes": {}, "inputs": {}, "tolerance": tolerance}
    read = parse_workload(given).require("workload")
    assert read.tolerance == Tolerance(None, 0.1, 0.9, extra={"allow_negative_inf": True})
    assert emit_workload(read, "sol").value == given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"type": "scalar", "value": "3"}, "expected a number or a boolean"),
        ({"type": "safetensors", "path": "p"}, "expected a string"),
        ({"type": "zeros"}, "expected one of `random`"),
    ],
)
def test_an_input_that_is_wrong_is_named(given, message):
    reading = parse_workload({"uuid": "u", "axes": {}, "inputs": {"x": given}})
    assert [message in str(finding) for finding in reading.findings] == [True]
