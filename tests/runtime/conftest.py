import pytest

from bedstone.runtime.load import Parts
from runtime_toy import toy_parts


@pytest.fixture(scope="session")
def toy(tmp_path_factory, cache) -> Parts:
    return toy_parts(tmp_path_factory.mktemp("kernels"), cache)
