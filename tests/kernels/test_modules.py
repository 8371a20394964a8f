"""Compiled modules: their parameter strings, their bytes, and another compiler."""

import ctypes
import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

from bedstone.library.catalog import cpu_kernels
from bedstone.target.toolchain import Unit, compile_unit, find_compiler
from kernels.harness import AVAILABLE, Library, poison

MODULES = frozenset(kernel.module for kernel in cpu_kernels().kernels.values())


@pytest.mark.slow
def test_every_entry_states_the_catalogs_parameter_types(libraries: dict[str, Library]) -> None:
    library = libraries["cpu-generic"]
    library.load(MODULES)
    for kernel in library.kernels.kernels.values():
        for stage in kernel.launches:
            assert library.abi(kernel, stage) == stage.abi
            function = library.loaded[kernel.module][stage.entry]
            assert ctypes.cast(function, ctypes.c_void_p).value


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("ziglang") is None, reason="the `ziglang` package is not installed"
)
@pytest.mark.parametrize("hardware", AVAILABLE)
def test_zig_compiles_the_same_kernels(
    hardware: str, tmp_path: Path, libraries: dict[str, Library]
) -> None:
    zig = Library(hardware, find_compiler(which=lambda _: None), tmp_path, {})
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 64)).astype(np.float32)
    w = rng.integers(0, 100, (40, 40), np.uint8)
    made = []
    for library in (zig, libraries[hardware]):
        y = poison((5, 40), np.float32)
        library.call("linear_q4_1", x=x, w=w, y=y, rows=5, k=64, n=40)
        made.append(y)
    np.testing.assert_array_equal(made[0], made[1])


@pytest.mark.parametrize("hardware", AVAILABLE)
def test_the_same_sources_elsewhere_give_the_same_bytes(
    hardware: str, tmp_path: Path, libraries: dict[str, Library]
) -> None:
    library = libraries[hardware]
    unit = library.unit("norm")
    copies = []
    for place in ("one", "two/three"):
        folders = [tmp_path / place / folder.parent.name for folder in unit.include]
        for folder, copy in zip(unit.include, folders, strict=True):
            shutil.copytree(folder, copy)
        source = next(c for c in folders if (c / "norm.c").exists()) / "norm.c"
        copied = Unit((source,), unit.flags, include=tuple(folders))
        cache = tmp_path / place / "cache"
        copies.append(compile_unit(copied, cache=cache, compiler=library.compiler))
    assert copies[0].name == copies[1].name
    assert copies[0].read_bytes() == copies[1].read_bytes()
