"""CUDA C++ to machine code, on a machine without a GPU."""

from dataclasses import replace
from pathlib import Path

import pytest

from bedstone.errors import KernelError, TargetError
from bedstone.target import nvrtc
from bedstone.target.blob import read_blob
from bedstone.target.hardware import read_sets
from bedstone.target.nvrtc import Nvrtc, compile_cubins, find_nvrtc
from bedstone.target.toolchain import Unit

SOURCE = """
#include "scale.cuh"
extern "C" __global__ void scale(const float *x, float *y, float by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = scaled(x[i], by);
}
"""
HEADER = "__device__ float scaled(float x, float by) { return x * by; }\n"


@pytest.fixture(scope="module")
def compiler() -> Nvrtc:
    return find_nvrtc()


@pytest.fixture
def unit(tmp_path: Path) -> Unit:
    (tmp_path / "include").mkdir()
    (tmp_path / "scale.cu").write_text(SOURCE)
    (tmp_path / "include" / "scale.cuh").write_text(HEADER)
    return Unit((tmp_path / "scale.cu",), include=(tmp_path / "include",))


@pytest.mark.parametrize(
    "name", [name for name, each in read_sets().items() if each.vendor == "nvidia"]
)
def test_a_kernel_compiles_for_every_set(unit, tmp_path, compiler, name):
    arch = read_sets()[name].arch
    (path,) = compile_cubins([unit], arch, cache=tmp_path / "cache", nvrtc=compiler)
    blob = read_blob("scale", path.read_bytes(), arch)
    assert (blob.form, list(blob.entries)) == ("cubin", ["scale"])


def test_the_same_sources_give_the_same_bytes_and_are_compiled_once(unit, tmp_path, compiler):
    made = [
        compile_cubins([unit], "sm_90a", cache=tmp_path / name, nvrtc=compiler)[0]
        for name in ("one", "two", "two")
    ]
    assert made[0].name == made[1].name
    assert made[0].read_bytes() == made[1].read_bytes()
    assert made[1] == made[2]


def test_a_changed_header_is_another_module(unit, tmp_path, compiler):
    cache = tmp_path / "cache"
    first = compile_cubins([unit], "sm_90a", cache=cache, nvrtc=compiler)
    (tmp_path / "include" / "scale.cuh").write_text(HEADER.replace("x * by", "x + by"))
    assert compile_cubins([unit], "sm_90a", cache=cache, nvrtc=compiler) != first


def test_a_nearer_folders_header_hides_the_one_beside_the_source(unit, tmp_path, compiler):
    cache = tmp_path / "cache"
    (path,) = compile_cubins([unit], "sm_90a", cache=cache, nvrtc=compiler)
    (tmp_path / "scale.cuh").write_text(HEADER.replace("x * by", "x + by"))
    (other,) = compile_cubins([unit], "sm_90a", cache=cache, nvrtc=compiler)
    assert path.read_bytes() == other.read_bytes()


def test_an_error_shows_the_kernels_own_line(unit, tmp_path, compiler):
    unit.sources[0].write_text(SOURCE.replace("y[i]", "z[i]"))
    with pytest.raises(KernelError, match=r"`scale\.cu` does not compile for `sm_90a`") as refused:
        compile_cubins([unit], "sm_90a", cache=tmp_path / "cache", nvrtc=compiler)
    assert 'scale.cu(6): error: identifier "z" is undefined' in str(refused.value)
    assert not list((tmp_path / "cache").glob("*.cubin"))


def test_an_option_it_does_not_know_is_told_in_its_words(unit, tmp_path, compiler):
    odd = replace(unit, flags=("--no-such-option",), defines={"BS_ONLY": "scale"})
    with pytest.raises(KernelError, match=r"for `sm_90a` with `BS_ONLY=scale`:\n.*no-such-option"):
        compile_cubins([odd], "sm_90a", cache=tmp_path / "cache", nvrtc=compiler)


def test_another_process_loads_the_library_from_where_it_was_found(compiler):
    assert compiler.library.is_absolute()
    assert compiler.library.name.startswith("libnvrtc.so")
    assert compiler.library.is_file()


def test_a_machine_without_the_compiler_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(nvrtc, "_SYSTEM_NAMES", ())
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(TargetError, match="pip install nvidia-cuda-nvrtc"):
        find_nvrtc()
