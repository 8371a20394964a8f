"""Products of codes by tiles have the bits that vectors give, and vectors stand in for tiles."""

from pathlib import Path

import numpy as np
import pytest

from bedstone.spec.dtype import FormatName
from bedstone.target.hardware import read_sets
from bedstone.target.toolchain import find_compiler
from kernels.harness import AVAILABLE, Library
from kernels.reference import weights
from kernels.test_linear import QUANTIZED, K, activations, linear
from kernels.test_mixture import xlinear

TILES, VECTORS = "cpu-x86-64-amx", "cpu-x86-64-v4"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(VECTORS not in AVAILABLE, reason="the CPU has no AVX-512 with VNNI"),
]


@pytest.fixture(scope="module")
def tiles(modules: Path) -> Library:
    """Compiled for tiles; where the machine has none, its modules are refused them and go on."""
    return Library(TILES, find_compiler(), modules, {})


def test_a_set_for_tiles_adds_only_them():
    sets = read_sets()
    assert sets[TILES].features - sets[VECTORS].features == {"amx_tile", "amx_int8"}
    assert (TILES in AVAILABLE) <= (VECTORS in AVAILABLE)


@pytest.mark.parametrize("name", QUANTIZED)
def test_tiles_give_the_bits_of_vectors(
    tiles: Library, libraries: dict[str, Library], name: FormatName
) -> None:
    rng = np.random.default_rng(len(name))
    w, _ = weights(name, 37, 3 * K[name], rng)
    args, _ = activations(rng.standard_normal((261, 3 * K[name])).astype(np.float32), codes=True)
    for rows in (31, 32, 33, 47, 128, 129, 261):
        some = {part: values[:rows].copy() for part, values in args.items()}
        made = [linear(each, name, some, w, 3 * K[name]) for each in (tiles, libraries[VECTORS])]
        np.testing.assert_array_equal(made[0].view(np.uint32), made[1].view(np.uint32))


@pytest.mark.parametrize("name", QUANTIZED)
def test_rows_that_experts_pick_do_not_lie_together(
    tiles: Library, libraries: dict[str, Library], name: FormatName
) -> None:
    """Each expert takes every other row: tiles are laid from rows far apart."""
    rng = np.random.default_rng(7)
    rows, n, experts = 75, 33, 2
    w, _ = weights(name, experts * n, K[name], rng)
    args, _ = activations(rng.standard_normal((rows, K[name])).astype(np.float32), codes=True)
    ids = (np.arange(rows, dtype=np.int32) % experts).reshape(rows, 1)
    made = [xlinear(each, name, args, ids, w, n) for each in (tiles, libraries[VECTORS])]
    np.testing.assert_array_equal(made[0].view(np.uint32), made[1].view(np.uint32))
