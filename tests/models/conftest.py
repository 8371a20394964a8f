"""A tiny model of each kind, as `transformers` runs it and as the oracle does."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from tiny_models import MODELS, Loaded, load, write_tiny

IDS = (1, 17, 42, 3, 3, 58, 9, 26, 0, 60, 11, 5)


@dataclass(frozen=True)
class Tiny:
    """`theirs` are the logits [len(ids), vocab] that `transformers` computes in float32."""

    ids: tuple[int, ...]
    theirs: np.ndarray
    loaded: Loaded


@pytest.fixture(scope="session", params=MODELS)
def tiny(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    folder = tmp_path_factory.mktemp(request.param)
    model = write_tiny(request.param, folder)
    with torch.no_grad():
        theirs = model(torch.tensor([IDS])).logits[0].numpy()
    return Tiny(IDS, theirs, load(str(folder)))
