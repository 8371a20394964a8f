import pytest

from letters import write_tokenizer
from packages import compiled
from tiny_models import write_tiny


def tiny(kind, numerics, folder, cache, **options):
    write_tiny(kind, folder / "checkpoint")
    write_tokenizer(folder / "checkpoint")
    checkpoint = str(folder / "checkpoint")
    options = {"numerics": numerics, "sequences": 2} | options
    return compiled(checkpoint, folder / "package", cache, **options).path


@pytest.fixture(scope="session")
def package(tmp_path_factory, cache):
    return tiny("llama", "precise", tmp_path_factory.mktemp("llama"), cache)
