import numpy as np
import pytest

from bedstone.prove.swap.measure import distance, logit_distance, near, outside


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32).view(np.uint8)


def test_zeros_of_both_signs_differ_in_bits_alone():
    found = distance(floats(0.0, 1.0), floats(-0.0, 1.0), "f32")
    assert (found.elements, found.bits, found.values, found.relative) == (2, 1, 0, 0.0)


def test_errors_are_over_the_size_of_what_a_has():
    found = distance(floats(3.0, 4.0), floats(3.0, 4.5), "f32")
    scale = np.sqrt(12.5)
    assert found.largest == 0.5
    assert found.peak == pytest.approx(0.5 / scale)
    assert found.relative == pytest.approx(0.5 / np.sqrt(2) / scale)


def test_a_number_that_b_loses_is_broken_and_one_that_a_lacks_is_not():
    found = distance(floats(1.0, np.nan), floats(np.nan, np.nan), "f32")
    assert (found.broken, found.values) == (1, 1)


def test_any_error_beside_zeros_is_whole():
    assert distance(floats(0.0), floats(1e-9), "f32").relative == 1.0


def test_divergence_is_that_of_the_distributions():
    a, b = np.array([[0.0, 0.0]]), np.array([[np.log(3.0), 0.0]])
    expected = 0.5 * np.log(0.5 / 0.75) + 0.5 * np.log(0.5 / 0.25)
    assert logit_distance(a, b, 0.01).kl == pytest.approx(expected)


def test_a_shift_of_all_logits_is_no_divergence():
    a = np.array([[1.0, 2.0, 3.0]])
    found = logit_distance(a, a + 100.0, 0.01)
    assert found.kl == pytest.approx(0.0, abs=1e-12)
    assert (found.differing, found.flips) == (1, 0)


def test_what_lies_outside_is_counted_and_nan_does():
    assert outside(np.array([-1, 0, 3, 4], np.int32), 0, 3) == 2
    assert outside(np.array([-1e30, np.nan, 4.0], np.float32), None, 3.5) == 2


def test_a_flip_has_the_lead_it_overcame():
    found = logit_distance(np.array([[1.0, 1.5]]), np.array([[2.0, 1.5]]), 0.01)
    assert (found.flips, found.beyond) == (1, 1)
    assert found.margin == pytest.approx(0.5)


def test_rows_that_are_not_finite_are_told_apart():
    nan = float("nan")
    a, b = np.array([[0.0, 1.0], [nan, 1.0]]), np.array([[nan, 1.0], [0.0, 1.0]])
    found = logit_distance(a, b, 0.01)
    assert (found.broken, found.blind, found.kl) == (1, 1, float("inf"))


def test_each_row_is_held_to_its_own_limit():
    a, b = np.array([[1.0, 1.5], [1.0, 1.5]]), np.array([[2.0, 1.5], [2.0, 1.5]])
    found = logit_distance(a, b, np.array([0.01, np.inf]))
    assert (found.over, found.beyond, found.flips) == (1, 1, 2)


def test_blocks_are_near_where_no_value_is_far_and_none_is_lost():
    a = np.stack([floats(*values) for values in ([1, 2], [1, 2], [1, 2], [0, 0], [np.nan, 2])])
    b = np.stack(
        [floats(*values) for values in ([1, 2.1], [1, 2.2], [np.inf, 2], [0, 0], [np.nan, 2])]
    )
    # a tenth of the root mean square of 1 and 2 is 0.158
    assert near(a, b, "f32", 0.1).tolist() == [True, False, False, True, True]
