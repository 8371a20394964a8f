"""Triton source to machine code, on a machine without a GPU."""

import platform
import sys
from pathlib import Path

import pytest

from bedstone.errors import KernelError, TargetError
from bedstone.target.blob import read_blob
from bedstone.target.cubin import cubin_arch, cubin_parameters
from bedstone.target.hardware import read_sets
from bedstone.target.toolchain import Unit
from bedstone.target.triton import Triton, compile_triton, find_triton

SOURCE = """\
import triton
import triton.language as tl

@triton.jit
def _twice(x):
    return x * 2.0

@triton.jit
def double(x: "*fp32", y: "*fp32", n: "i32", BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, _twice(tl.load(x + at, mask=at < n)), mask=at < n)
"""
DEFINES = {"BLOCK": "128", "num_warps": "4"}
HIDDEN = (8, 8)

pytestmark = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="Triton has no wheel for it"
)


@pytest.fixture(scope="module")
def triton() -> Triton:
    return find_triton()


def unit(folder: Path, source: str = SOURCE, **defines: str) -> Unit:
    folder.mkdir(exist_ok=True)
    (folder / "double.py").write_text(source)
    return Unit((folder / "double.py",), defines=defines or DEFINES)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name, each in read_sets().items() if each.vendor == "nvidia"]
)
def test_a_kernel_compiles_for_every_set_and_states_its_parameters(tmp_path, triton, name):
    arch = read_sets()[name].arch
    (path,) = compile_triton([unit(tmp_path)], arch, cache=tmp_path / "cache", triton=triton)
    data = path.read_bytes()
    blob = read_blob("double", data, arch)
    assert (blob.form, cubin_arch(data, "double")) == ("cubin", arch)
    assert dict(blob.entries) == {"double": "8 B, 8 B, 4 B, 8 B, 8 B"}
    # behind its own a kernel of Triton takes two pointers to scratch of the device's
    assert cubin_parameters(data, "double") == {"double": (8, 8, 4, *HIDDEN)}


@pytest.mark.slow
def test_the_same_source_gives_the_same_bytes_anywhere_and_is_compiled_once(tmp_path, triton):
    made = [
        compile_triton([unit(tmp_path / name)], "sm_90a", cache=tmp_path / name, triton=triton)[0]
        for name in ("one", "two", "two")
    ]
    assert made[0].name == made[1].name
    assert made[0].read_bytes() == made[1].read_bytes()
    assert made[1] == made[2]
    assert str(tmp_path).encode() not in made[0].read_bytes()
    assert not list((tmp_path / "two").glob("__pycache__"))


@pytest.mark.slow
def test_what_decides_the_code_decides_its_name(tmp_path, triton):
    units = [
        unit(tmp_path / "a"),
        unit(tmp_path / "b", SOURCE.replace("2.0", "3.0")),
        unit(tmp_path / "c", BLOCK="64", num_warps="2"),
    ]
    paths = compile_triton(units, "sm_90a", cache=tmp_path / "cache", triton=triton)
    assert len({path.read_bytes() for path in paths}) == 3
    (other,) = compile_triton(units[:1], "sm_89", cache=tmp_path / "cache", triton=triton)
    assert other not in paths


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "defines", "told"),
    [
        ("mask=at < n)), mask", "mask=at < m)), mask", {}, r":11: NameError\('m is not defined'\)"),
        ("x * 2.0", "x * two", {}, r":6: NameError\('two is not defined'\)\n    return x \* two"),
        ("x * 2.0", "x *", {}, ":6: SyntaxError: invalid syntax"),
        ("import triton\n", "import nothing\n", {}, ":1: ModuleNotFoundError: .*'nothing'"),
        ("_twice", "twice", {}, ":1: expected one kernel, found `twice`, `double`"),
        ('y: "*fp32"', "y", {}, ":8: parameter `y` has no type"),
        ("", "", {"num_warps": "4"}, ":8: takes constants BLOCK; given none"),
        ("", "", {"BLOCK": "128", "TILE": "1"}, ":8: takes constants BLOCK; given BLOCK, TILE"),
        ("", "", {"BLOCK": "1 2"}, "`BLOCK` is no constant: found `1 2`"),
        ("", "", {"BLOCK": "100"}, ":10: arange's range must be a power of 2"),
        ("", "", {"BLOCK": "128", "num_warps": "3"}, "num_warps must be a power of 2"),
        ("tl.load(x + at, mask=at < n)", "tl.sort(tl.load(x + at))", {},
         ":8: needs 512 bytes of shared memory, its row gives 0"),
        ("import triton\n", "raise SystemExit(0)\n", {}, "ended and left no code"),
    ],
)  # fmt: skip
def test_an_error_shows_the_kernels_own_line(tmp_path, triton, old, new, defines, told):
    broken = unit(
        tmp_path, SOURCE.replace(old, new, 1 if old == "import triton\n" else -1), **defines
    )
    with pytest.raises(
        KernelError, match=f"(?s)`double.py` does not compile for `sm_90a` with `.*`:\n.*{told}"
    ):
        compile_triton([broken], "sm_90a", cache=tmp_path / "cache", triton=triton)
    assert not list(tmp_path.glob("cache/*.cubin"))


@pytest.mark.slow
def test_shared_memory_that_a_row_gives_is_enough(tmp_path, triton):
    source = SOURCE.replace("tl.load(x + at, mask=at < n)", "tl.sort(tl.load(x + at))")
    given = unit(tmp_path, source, BLOCK="128", shared="512")
    assert compile_triton([given], "sm_90a", cache=tmp_path / "cache", triton=triton)


@pytest.mark.slow
def test_the_source_sees_nothing_of_this_process(tmp_path, triton, monkeypatch):
    monkeypatch.setenv("BEDSTONE_SECRET", "1")
    spying = "import os\nassert 'BEDSTONE_SECRET' not in os.environ, 'seen'\n"
    told = unit(tmp_path, spying + "assert 'bedstone' not in os.sys.modules, 'seen'\n" + SOURCE)
    assert compile_triton([told], "sm_90a", cache=tmp_path / "cache", triton=triton)


def test_other_architectures_are_not_for_triton(tmp_path, triton):
    with pytest.raises(KernelError, match=r"`double\.py` is Triton source, .* for `gfx1151`"):
        compile_triton([unit(tmp_path)], "gfx1151", cache=tmp_path / "cache", triton=triton)


def test_a_machine_without_the_compiler_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(TargetError, match="run `pip install triton`"):
        find_triton()
