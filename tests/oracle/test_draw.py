"""What a draw should be is what transformers' processors leave of a row."""

import numpy as np
import pytest
import torch
from transformers.generation import logits_process as theirs

from bedstone.oracle.draw import Wish, shares, uniform

VOCAB = 50
CUTS = [
    Wish(temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    for temperature in (0.3, 1.0, 4.0)
    for top_k, top_p, min_p in (
        (0, 1.0, 0.0),
        (7, 1.0, 0.0),
        (0, 0.6, 0.0),
        (0, 1.0, 0.1),
        (12, 0.5, 0.0),
        (20, 0.9, 0.05),
        (3, 0.999, 0.3),
        (1, 0.5, 0.5),
        (VOCAB + 9, 1e-9, 1.0),
    )
]


def logits(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(VOCAB) * 3


@pytest.mark.parametrize("wish", CUTS, ids=str)
def test_what_is_left_of_a_row_is_what_transformers_leaves(wish: Wish) -> None:
    chain = [theirs.TemperatureLogitsWarper(wish.temperature)]
    if wish.top_k:
        chain.append(theirs.TopKLogitsWarper(wish.top_k))
    if wish.top_p < 1:
        chain.append(theirs.TopPLogitsWarper(wish.top_p))
    if wish.min_p:
        chain.append(theirs.MinPLogitsWarper(wish.min_p))
    for seed in range(5):
        given = torch.tensor(logits(seed))[None]
        for processor in chain:
            given = processor(torch.tensor([[0]]), given)
        left = given[0].numpy()
        expected = np.exp(left - left.max())
        np.testing.assert_allclose(
            shares(logits(seed), wish), expected / expected.sum(), rtol=1e-9, atol=1e-12
        )


def test_the_numbers_of_a_seed_lie_evenly() -> None:
    """So do those of seeds one beside the other at one position: chi-squared over 64 parts."""
    for numbers in (
        [uniform(12, position) for position in range(6400)],
        [uniform(seed, 12) for seed in range(6400)],
    ):
        counts = np.bincount((np.array(numbers) * 64).astype(int), minlength=64)
        # 63 degrees of freedom: one in a million is above 133
        assert ((counts - 100) ** 2 / 100).sum() < 133
