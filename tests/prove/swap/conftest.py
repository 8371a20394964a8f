import pytest

from bedstone.prove.swap.swap import Settings, prove_swap
from bedstone.prove.swap.verdict import Bounds
from bedstone.runtime.load import read_parts
from packages import compiled
from swaps import rebuilt, write_model

CONTEXT = 4200
"""More than 4,096 positions, and the last of them inside a page."""


@pytest.fixture(scope="session")
def package(tmp_path_factory, cache):
    """A llama of a long context whose norms have a weight of zero: zeros of both signs occur."""
    folder = tmp_path_factory.mktemp("swap")
    checkpoint = write_model(folder / "checkpoint", CONTEXT)
    return compiled(checkpoint, folder / "package", cache, numerics="precise", sequences=3).path


SCALED = "return vf_load_n(x + i, n) * factor"
OFF = ("norm.h", SCALED, SCALED.replace("return", "return 1.02f *"))
SLOWER = (
    "norm.c",
    "    if (out.q.codes) bs_quantize_row(",
    "    for (volatile int i = 0; i < 20000; i++) {}\n    if (out.q.codes) bs_quantize_row(",
)


@pytest.fixture(scope="session")
def timed_proof(package, cache, tmp_path_factory):
    """Of norms that are off by two percent, and take their time."""
    other = rebuilt(package, tmp_path_factory.mktemp("slower") / "b", "norm", SLOWER, OFF)
    settings = Settings(Bounds(), cache, threads=1, timed=True, package=package)
    return prove_swap(read_parts(package), read_parts(other), settings, lambda _: None)
