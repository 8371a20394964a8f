"""What a run found, in rates and shares, and how two packages compare."""

import json

import pytest

from bedstone.bench.cases import Case
from bedstone.bench.rates import Rates
from bedstone.bench.record import RANDOM_WEIGHTS, Ran, Record, Result
from bedstone.bench.spread import Spread
from bedstone.build.costs import Cost
from bedstone.cli.bench_text import record_lines

MACHINE = Rates(bandwidth=4e12, operations=8e14)
COST = Cost(weights=7_000_000_000, cache=900_000_000, activations=100_000_000, operations=8 * 10**9)
STEP = Case("decode", 8, 512)


def ran(path, draw=None):
    weights = None if draw is None else RANDOM_WEIGHTS
    return Ran(path, "toy", "toy.gguf", "hopper", "quantized", 4096, 8, 1.5, weights, draw)


def result(package, *samples, case=STEP, machine=MACHINE):
    return Result(case, package, 4, Spread.of(samples), samples, COST, machine)


def test_shares_are_of_what_the_machine_can_do():
    found = result(0, 0.004, 0.005, 0.006)
    assert found.tokens_per_second == pytest.approx(1600)
    assert found.of_bandwidth == pytest.approx(8e9 / 0.005 / 4e12)
    assert found.of_operations == pytest.approx(8e9 / 0.005 / 8e14)
    assert found.limit_seconds == pytest.approx(0.002)
    assert found.json()["of_limit"] == pytest.approx(0.4)


def test_a_machine_whose_matrix_rate_is_unknown_has_no_share_of_it():
    found = result(0, 0.004, machine=Rates(4e12))
    assert found.of_operations is None
    assert found.limit_seconds == pytest.approx(0.002)


def test_the_longer_of_moving_and_computing_is_the_limit():
    found = result(0, 0.1, machine=Rates(4e12, operations=1e11))
    assert found.limit_seconds == pytest.approx(0.08)


def test_two_packages_compare_sample_by_sample():
    prompt = Case("prefill", 1, 100)
    record = Record(
        "cuda",
        MACHINE,
        (ran("a"), ran("b")),
        (
            result(0, 1.0, 2.0), result(1, 2.0, 4.0),
            result(0, 1.0, 1.0, case=prompt), result(1, 0.5, 0.5, case=prompt),
        ),
        None,
    )  # fmt: skip
    assert [(case, spread.median) for case, spread in record.comparisons] == [
        (STEP, 2.0),
        (prompt, 0.5),
    ]
    assert [each["times_as_long"]["median"] for each in record.json()["against"]] == [2.0, 0.5]
    assert "second / first  prefill of 100: 0.500" in "\n".join(record_lines(record))


def test_one_package_compares_with_nothing():
    record = Record("cuda", MACHINE, (ran("a"),), (result(0, 1.0),), 2.5)
    assert record.comparisons == ()
    assert record.json()["against"] == []


def test_a_record_is_json_and_says_what_was_random():
    record = Record("cuda", MACHINE, (ran("a", 0.5),), (result(0, 1.0),), 2.5)
    found = json.loads(json.dumps(record.json()))
    assert found["packages"][0]["weights"] == RANDOM_WEIGHTS
    assert found["packages"][0]["draw_seconds"] == 0.5
    assert found["process_start_to_first_token_seconds"] == 2.5
    assert found["results"][0]["traffic"] == {
        "weights": 7_000_000_000, "cache": 900_000_000, "activations": 100_000_000,
    }  # fmt: skip
    text = "\n".join(record_lines(record))
    assert "4000 GB/s · 800 TFLOP/s" in text
    assert "random weights drawn 0.50 s" in text
    assert "process start to first token  2.50 s" in text


def test_a_note_of_the_machine_is_shown():
    machine = Rates(4e12, note="no cuBLAS")
    record = Record("cuda", machine, (ran("a"),), (result(0, 1.0, machine=machine),), None)
    assert "note     no cuBLAS" in record_lines(record)
