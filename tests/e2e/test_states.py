"""The recurrent state a sequence carries on the device is that of `transformers`, step by step."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from bedstone.build.request import Package
from bedstone.checkpoint.config import ModelConfig
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.runtime.load import load
from letters import write_tokenizer
from packages import Fed, Together, compiled
from tiny_models import LONG, write_tiny

STEPS = (1, 2, 3, 4, 7, 12, 33, len(LONG))
"""Before a ring is full, when it is, and when it has wrapped many times."""


@dataclass(frozen=True)
class Hybrid:
    """`rings` [rows, channels] and `states` [heads, dk, dv] by layer, after each of `STEPS`."""

    package: Package
    config: ModelConfig
    rings: dict[int, dict[int, np.ndarray]]
    states: dict[int, dict[int, np.ndarray]]

    @property
    def layers(self) -> list[int]:
        kinds = self.config.layer_kinds
        return [layer for layer, kind in enumerate(kinds) if kind == "recurrent"]


@pytest.fixture(
    scope="module",
    params=["qwen3-next", "qwen3-next-some-dense", "qwen3.5", "qwen3.5-wide-taps", "qwen3.5-moe"],
)
def hybrid(request, tmp_path_factory, cache) -> Hybrid:
    folder = tmp_path_factory.mktemp(request.param)
    model = write_tiny(request.param, folder / "checkpoint")
    write_tokenizer(folder / "checkpoint")
    opened = open_checkpoint(str(folder / "checkpoint"))
    opened.close()
    package = compiled(
        str(folder / "checkpoint"), folder / "package", cache, numerics="precise", sequences=3
    )
    made = Hybrid(package, opened.config, {}, {})
    for steps in STEPS:
        with torch.no_grad():
            kept = model(torch.tensor([LONG[:steps]]), use_cache=True).past_key_values
        rows = opened.config.recurrent.kernel - 1
        made.rings[steps] = {
            layer: kept.get_conv_state(layer, state_idx=0)[0].numpy()[:, -rows:].T
            for layer in made.layers
        }
        made.states[steps] = {
            layer: kept.get_recurrent_state(layer, state_idx=0)[0].numpy() for layer in made.layers
        }
    return made


@pytest.fixture
def session(hybrid, cache) -> Iterator:
    with load(hybrid.package.path, cache=cache, tokens=128, sequences=3) as loaded:
        yield loaded


def near(ours: np.ndarray, theirs: np.ndarray, what: str) -> None:
    most = 1e-4 * np.abs(theirs).max()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=most, err_msg=what)


def require_theirs(hybrid: Hybrid, sequence: Fed) -> None:
    kept = sequence.cached()
    for layer in hybrid.layers:
        theirs = hybrid.states[sequence.length][layer]
        near(kept[f"state.{layer}"].reshape(theirs.shape), theirs, f"state of layer {layer}")
        theirs = hybrid.rings[sequence.length][layer]
        rings = [kept[f"ring.{role}.{layer}"].reshape(len(theirs), -1) for role in "qkv"]
        near(np.concatenate(rings, axis=1), theirs, f"ring of layer {layer}")


def test_steps_of_one_row_carry_the_state_of_transformers(hybrid, session):
    sequence = Fed(session, (2, 0), slot=2)
    for token in LONG:
        sequence.feed([token], "decode")
        if sequence.length in STEPS:
            require_theirs(hybrid, sequence)


def test_chunks_carry_the_state_of_transformers(hybrid, session):
    sequence = Fed(session, (1, 3))
    for start, end in zip((0, *STEPS), STEPS, strict=False):
        sequence.feed(LONG[start:end])
        require_theirs(hybrid, sequence)


def test_each_sequence_of_a_batch_carries_its_own(hybrid, session):
    """One behind the other, each where the one before it was."""
    sequences = []
    for i in range(3):
        sequences.append(Fed(session, (i,), slot=i + 1))
        sequences[i].feed(LONG[: i + 1])
    together = Together(sequences)
    for _ in range(5):
        together.feed([LONG[sequence.length] for sequence in sequences])
        for sequence in sequences:
            if sequence.length in STEPS:
                require_theirs(hybrid, sequence)
