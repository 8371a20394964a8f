import pytest

from bedstone.prove.sandbox.zygote import Zygote
from upstream import source_distribution


@pytest.fixture(scope="session")
def zygote():
    """The process that forks candidates, started once."""
    with Zygote() as running:
        yield running


@pytest.fixture(scope="session")
def upstream(tmp_path_factory):
    """FlashInfer-Bench's source distribution; parallel workers share one download."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base
    return source_distribution(shared / "flashinfer-bench")
