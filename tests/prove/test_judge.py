import math

import pytest
import torch

from bedstone.prove.judge import judge
from bedstone.spec.workload import Tolerance

NAN, INF = math.nan, math.inf


def floats(*values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype)


def test_metrics_say_where_and_by_how_much():
    expected = torch.arange(12.0).reshape(3, 4)
    found = expected.clone()
    found[1, 2] += 0.5
    metrics = judge(found, expected, "float32")
    assert not metrics.fits
    assert metrics.worst == (1, 2)
    assert (metrics.expected, metrics.found) == (6.0, 6.5)
    assert metrics.max_absolute_error == 0.5
    assert metrics.max_relative_error == pytest.approx(0.5 / 6)
    assert metrics.matched == pytest.approx(11 / 12)


@pytest.mark.parametrize(
    ("found", "expected", "fits"),
    [
        ((1.0, NAN), (1.0, NAN), False),
        ((1.0, NAN), (1.0, 2.0), False),
        ((1.0, 2.0), (1.0, NAN), False),
        ((1.0, INF), (1.0, INF), True),
        ((1.0, -INF), (1.0, -INF), True),
        ((1.0, -INF), (1.0, INF), False),
        ((1.0, 2.0), (1.0, INF), False),
        ((1.0, INF), (1.0, 2.0), False),
        ((-INF, -INF), (-INF, -INF), True),
        ((1.0005, 2.0), (1.0, 2.0), True),
        ((1.01, 2.0), (1.0, 2.0), False),
    ],
)
def test_nan_matches_nothing_and_an_infinity_itself(found, expected, fits):
    assert judge(floats(*found), floats(*expected), "float32").fits is fits


def test_the_tolerance_follows_the_size_of_the_output():
    # an absolute bound would call zeros right where the values are small
    small = torch.randn(1000, generator=torch.Generator().manual_seed(0)) * 1e-6
    assert not judge(torch.zeros(1000), small, "float32").fits
    assert judge(small * 1.0001, small, "float32").fits


def test_every_share_that_must_fit_is_asked_for():
    expected = torch.linspace(1, 2, 100)
    found = expected.clone()
    found[:10] *= 1.1
    for matched, fits in ((1.0, False), (0.91, False), (0.9, True)):
        tolerance = Tolerance(1e-3, 0.0, matched, spread=1.0)
        assert judge(found, expected, "float32", tolerance).fits is fits


def test_no_tolerance_is_so_wide_that_a_constant_passes():
    expected = torch.linspace(0.5, 1, 100)
    metrics = judge(torch.full((100,), 0.75), expected, "float32", Tolerance(0.2, 0.5))
    assert metrics.matched == 1.0
    assert metrics.spread == pytest.approx(1.0)
    assert not metrics.fits


def test_values_that_are_all_alike_have_no_spread_to_measure_by():
    ones = torch.ones(100)
    assert judge(ones + 1e-5, ones, "float32").fits
    assert not judge(ones * 0.99, ones, "float32").fits


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8"])
def test_integers_are_exact(dtype):
    kind = getattr(torch, dtype)
    expected = torch.tensor([1, 2, 100], dtype=kind)
    assert judge(expected.clone(), expected, dtype).fits
    metrics = judge(torch.tensor([1, 2, 101], dtype=kind), expected, dtype)
    assert (metrics.fits, metrics.worst, metrics.found) == (False, (2,), 101.0)


def test_large_integers_do_not_blur():
    expected = torch.tensor([2**24 + 1, 2**53 + 1])
    assert not judge(torch.tensor([2**24, 2**53 + 1]), expected, "int64").fits
    assert not judge(torch.tensor([2**24 + 1, 2**53]), expected, "int64").fits


def test_a_boolean_is_a_byte_of_0_or_1():
    expected = torch.tensor([True, False, True])
    assert judge(expected.clone(), expected, "bool").fits
    odd = torch.tensor([0xA5, 0, 1], dtype=torch.uint8).view(torch.bool)
    assert not judge(odd, expected, "bool").fits


def test_an_empty_output_fits():
    assert judge(torch.empty(0), torch.empty(0), "float32").fits


def test_doubles_are_held_to_their_own_precision():
    expected = torch.linspace(1, 2, 10, dtype=torch.float64)
    assert judge(expected * (1 + 1e-9), expected, "float64").fits
    assert not judge(expected * (1 + 1e-5), expected, "float64").fits


def test_integers_may_differ_by_the_steps_a_tolerance_allows():
    expected = torch.tensor([1, 5, 127], dtype=torch.int8)
    found = torch.tensor([2, 4, 126], dtype=torch.int8)
    assert not judge(found, expected, "int8").fits
    assert judge(found, expected, "int8", Tolerance(steps=1)).fits
    assert not judge(found - 1, expected, "int8", Tolerance(steps=1)).fits
    yes = torch.tensor([True, False])
    assert not judge(~yes, yes, "bool", Tolerance(steps=1)).fits
