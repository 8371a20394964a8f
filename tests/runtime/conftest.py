from pathlib import Path

import pytest

from bedstone.runtime.load import Parts
from runtime_toy import toy_parts


@pytest.fixture(scope="session")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def toy(tmp_path_factory, cache) -> Parts:
    return toy_parts(tmp_path_factory.mktemp("kernels"), cache)
