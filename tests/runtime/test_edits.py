"""What penalties and biases make of logits, by the formulas that users know."""

import numpy as np
import pytest
import torch
from transformers.generation.logits_process import RepetitionPenaltyLogitsProcessor

from bedstone.errors import CapacityError
from bedstone.oracle.draw import Wish, scores
from bedstone.runtime.edits import Edits
from bedstone.spec.sampling import Sampling

VOCAB = 50


def logits(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(VOCAB) * 3


def edited(row: np.ndarray, sampling: Sampling, prompt: list[int], made: list[int]) -> np.ndarray:
    edits = Edits(sampling, VOCAB)
    for token in prompt:
        edits.read(token)
    for token in made:
        edits.make(token)
    columns = (edits.tokens, edits.scales, edits.adds)
    return scores(row, Wish(edits=[*zip(*(each[: edits.count] for each in columns), strict=True)]))


@pytest.mark.parametrize("penalty", [1.3, 0.5])
def test_a_token_seen_is_penalised_once_as_transformers_does(penalty: float) -> None:
    """Of the prompt and of the output; above zero and below."""
    prompt, made = [*range(20), 3, 3], [4, 30, 31, 30]
    row = logits(9)
    assert (row[:20] > 0).any()
    assert (row[:20] < 0).any()
    seen = torch.tensor([[*prompt, *made]])
    expected = RepetitionPenaltyLogitsProcessor(penalty)(seen, torch.tensor(row)[None])[0].numpy()
    np.testing.assert_allclose(
        edited(row, Sampling(repetition=penalty), prompt, made), expected, rtol=1e-6
    )


def test_presence_counts_once_frequency_each_time_and_both_of_the_output_alone() -> None:
    prompt, made, row = [1, 1, 2, 3], [3, 5, 3, 3, 1], logits(4)
    sampling = Sampling(presence=0.5, frequency=0.25, bias={3: 2.0, 40: -1.5})
    counts = np.bincount(made, minlength=VOCAB)
    expected = row - 0.25 * counts - 0.5 * (counts > 0)
    expected[3] += 2
    expected[40] -= 1.5
    np.testing.assert_allclose(edited(row, sampling, prompt, made), expected, rtol=1e-6)


def test_a_bias_is_added_to_what_a_penalty_left() -> None:
    row = np.zeros(VOCAB)
    row[[3, 4]] = 4, -4
    sampling = Sampling(repetition=2.0, presence=0.5, bias={3: 1.0, 4: 1.0})
    made = edited(row, sampling, [3], [4])
    assert (made[3], made[4], made[5]) == (4 / 2 + 1, -4 * 2 + 1 - 0.5, 0)


def test_no_more_tokens_are_edited_than_there_is_room_for() -> None:
    edits = Edits(Sampling(repetition=2.0), 3)
    for token in (7, 8, 9, 8):
        edits.read(token)
    assert edits.make(7)[:3] == (0, 7, 2.0)
    with pytest.raises(CapacityError, match="3 tokens are edited"):
        edits.make(10)
    assert edits.count == 3


def test_a_prompt_that_no_penalty_touches_takes_no_room() -> None:
    edits = Edits(Sampling(presence=1.0), 1)
    for token in range(9):
        edits.read(token)
    assert edits.make(4) == (0, 4, 1.0, -1.0)
