import pytest
import torch

from letters import write_tokenizer
from packages import compiled
from tiny_models import write_tiny

CONTEXT = 4200
"""More than 4,096 positions, and the last of them inside a page."""


@pytest.fixture(scope="session")
def swap_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("swap-cache")


@pytest.fixture(scope="session")
def package(tmp_path_factory, swap_cache):
    """A llama of a long context whose norms have a weight of zero: zeros of both signs occur."""
    folder = tmp_path_factory.mktemp("swap")
    model = write_tiny("llama", folder / "checkpoint")
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "layernorm" in name:
                weight[3] = 0.0
    model.config.max_position_embeddings = CONTEXT
    model.save_pretrained(folder / "checkpoint")
    write_tokenizer(folder / "checkpoint")
    checkpoint = str(folder / "checkpoint")
    return compiled(
        checkpoint, folder / "package", swap_cache, numerics="precise", sequences=3
    ).path
