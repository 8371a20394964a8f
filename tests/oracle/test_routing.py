"""Which experts a row takes and how much each weighs: the published failures, by their numbers."""

import numpy as np
import pytest

from bedstone.graph.step import Renorm, Score, TopK
from bedstone.oracle.mixture import renorm, score, topk


def routed(logits: list[float], choice: TopK, weighing: Renorm, bias: list[float] | None = None):
    """The experts of one row, best first, and their weights."""
    fn = "softmax" if bias is None else "sigmoid"
    scores = score(np.array([logits], np.float64), Score("r", "s", fn))
    ids = topk(scores, None if bias is None else np.array(bias), choice)
    return ids[0].tolist(), renorm(scores, ids, weighing)[0]


def choose(k: int, **groups: int) -> TopK:
    return TopK("s", "ids", k, **groups)


def weigh(*, normalise: bool, factor: float = 1.0) -> Renorm:
    return Renorm("s", "ids", "w", normalise, factor)


@pytest.mark.parametrize(
    ("k", "normalise", "expected"),
    [
        (2, False, [0.64391426, 0.23688282]),
        (2, True, [0.73105858, 0.26894142]),
        (1, False, [0.64391426]),
    ],
)
def test_c22_weights_are_of_all_experts_unless_made_to_sum_to_one(k, normalise, expected) -> None:
    ids, weights = routed([2, 1, 0, -1], choose(k), weigh(normalise=normalise))
    assert ids == list(range(k))
    np.testing.assert_allclose(weights, expected, rtol=0, atol=5e-9)


def test_c23_a_bias_selects_but_does_not_weigh() -> None:
    weighing = weigh(normalise=True, factor=2.5)
    ids, weights = routed([0, -1, -2, -3], choose(2), weighing, bias=[0, 0, 1, 0])
    assert ids == [2, 0]
    np.testing.assert_allclose(weights, [0.48127568, 2.01872432], rtol=0, atol=5e-9)


def test_c23_a_tiny_score_outlives_a_large_bias() -> None:
    ids, weights = routed([-17, 0], choose(1), weigh(normalise=False), bias=[12, 0])
    assert ids == [0]
    np.testing.assert_allclose(weights, [4.1399375e-08], rtol=1e-7)


def test_c24_experts_outside_the_best_groups_lose_to_negative_scores() -> None:
    biased = np.array([[-0.5, -0.6, -0.1, -2.0]])
    ids = topk(biased, None, choose(2, groups=2, group_k=1, group_best=2))
    assert ids.tolist() == [[0, 1]]
