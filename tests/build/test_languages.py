"""A set's sources may be of several languages, each compiled by its own compiler."""

import platform
from pathlib import Path

import pytest

from bedstone.build.kernels import compile_modules
from bedstone.errors import KernelError
from bedstone.library.kernel import Extent, Kernel
from bedstone.target.hardware import read_sets
from bedstone.target.sources import read_sources
from kernel_trees import hardware, write_tree

ONE = Extent()


def kernel(entry: str, module: str, source: str, **defines: str) -> Kernel:
    return Kernel(entry, module, source, defines, (), (ONE, ONE, ONE))


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="Triton has no wheel for it")
def test_a_set_may_hold_sources_in_several_languages(tmp_path: Path) -> None:
    copy = 'extern "C" __global__ void copy(float *y, float x) { *y = x; }\n'
    fill = """\
import triton
import triton.language as tl

@triton.jit
def fill(y: "*fp32", x: "fp32", N: tl.constexpr):
    tl.store(y + tl.arange(0, N), x)
"""
    kernels = write_tree(
        tmp_path,
        hardware("base", vendor="nvidia", arch="sm_90a"),
        {"base/common/copy.cu": copy, "base/common/fill.py": fill},
    )
    wanted = {
        "fill-4": kernel("fill", "fill-4", "fill.py", N="4"),
        "copy": kernel("copy", "copy", "copy.cu"),
        "fill-8": kernel("fill", "fill-8", "fill.py", N="8"),
    }
    sources = read_sources(read_sets(kernels)["base"], kernels=kernels)
    blobs = compile_modules(sources, wanted, tmp_path / "cache").built.blobs
    assert [(name, list(blob.entries)) for name, blob in blobs.items()] == [
        ("fill-4", ["fill"]), ("copy", ["copy"]), ("fill-8", ["fill"])
    ]  # fmt: skip
    assert blobs["fill-4"].sha256 != blobs["fill-8"].sha256


def test_a_source_in_another_vendors_language_is_refused(tmp_path: Path) -> None:
    kernels = write_tree(tmp_path, hardware("base"), {"base/common/rows.cu": ""})
    sources = read_sources(read_sets(kernels)["base"], kernels=kernels)
    with pytest.raises(KernelError, match=r"`rows\.cu` is no source for .*`base` of vendor `cpu`"):
        compile_modules(sources, {"rows": kernel("take_row", "rows", "rows.c")}, tmp_path / "cache")
