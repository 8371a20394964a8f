"""Tiny random checkpoints compiled and loaded, next to what `transformers` says of them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from bedstone.build.request import Package
from bedstone.checkpoint.reference import open_checkpoint
from letters import write_tokenizer
from packages import compiled
from reference_reader import AVAILABLE, reference_reader
from tiny_models import LONG, MODELS, write_tiny


@dataclass(frozen=True)
class TinyPackage:
    """A tiny checkpoint in precise numerics; `theirs` are the logits [ids, vocab] of `LONG`.

    A `latent` model computes a step of one row another way than a chunk.
    """

    checkpoint: Path
    package: Package
    theirs: np.ndarray
    latent: bool


@pytest.fixture(scope="session")
def reference():
    assert AVAILABLE, "the reference reader is a test dependency: pip install kern-llm==0.3.1"
    with reference_reader() as reader:
        yield reader


@pytest.fixture(scope="session", params=MODELS)
def tiny(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, cache: Path
) -> TinyPackage:
    folder = tmp_path_factory.mktemp(request.param)
    model = write_tiny(request.param, folder / "checkpoint")
    write_tokenizer(folder / "checkpoint")
    with torch.no_grad():
        theirs = model(torch.tensor([LONG])).logits[0].numpy()
    package = compiled(str(folder / "checkpoint"), folder / "package", cache, numerics="precise")
    opened = open_checkpoint(str(folder / "checkpoint"))
    latent = opened.config.latent is not None
    opened.close()
    return TinyPackage(folder / "checkpoint", package, theirs, latent)
