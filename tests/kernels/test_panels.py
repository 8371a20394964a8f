"""Products by matrices in panels: the bits of those by matrices as they are held."""

import ctypes

import numpy as np
import pytest

from bedstone.library.catalog import cpu_kernels
from bedstone.library.kernel import Kernel
from bedstone.spec.dtype import FORMATS, FormatName
from bedstone.spec.manifest import BufferParam, StateParam
from kernels.harness import AVAILABLE, DTYPES, Library, poison
from kernels.reference import Array, quantize, weights

LAID = cpu_kernels().laid
HEADER: dict[FormatName, int] = {"q8_0": 2, "q4_0": 2, "q4_1": 4}
SLOTS = 70


@pytest.fixture(params=AVAILABLE)
def library(request: pytest.FixtureRequest, libraries: dict[str, Library]) -> Library:
    """Those of the CPU's sets: no other has panels."""
    return libraries[request.param]


def in_panels(w: Array, name: FormatName) -> Array:
    """Panel by panel and block by block, as docs/kernels.md has it."""
    size, head = FORMATS[name].block_bytes, HEADER[name]
    laid = []
    for panel in w.reshape(-1, 16, w.shape[1] // size, size):
        for block in panel.transpose(1, 0, 2):
            codes = block[:, head:] ^ (128 if name == "q8_0" else 0)
            laid += [codes[:, at : at + 4] for at in range(0, size - head, 4)]
            laid += [block[:, at : at + 2] for at in range(0, head, 2)]
    return np.concatenate([part.ravel() for part in laid]).reshape(w.shape)


def given(
    kernel: Kernel, name: FormatName, rows: int, k: int, wide: int = 96
) -> dict[str, Array | float]:
    """Something for each parameter; outputs are poison."""
    rng = np.random.default_rng([rows, k])
    ns = {"n": wide, "n0": wide - 16, "n1": 16, "n2": 48, "n3": 112}
    xq, xs, xz = quantize(rng.standard_normal((rows, k)).astype(np.float32))
    fixed = {"xq": xq, "xs": xs, "xz": xz, "rows": rows, "k": k, "act": 1, "cap": 1.5, **ns}
    fixed["slot"] = rng.permutation(SLOTS)[:rows].astype(np.int32)
    args: dict[str, Array | float] = {}
    for param in kernel.params:
        n = ns.get(f"n{param.name[-1]}", ns["n"])
        if param.name in fixed:
            args[param.name] = fixed[param.name]
        elif param.name.startswith("w"):
            args[param.name] = weights(name, n, k, rng)[0]
        elif param.name.startswith("bias"):
            args[param.name] = rng.standard_normal(n).astype(np.float32)
        elif param.name == "add":
            args[param.name] = rng.standard_normal((rows, n)).astype(np.float32)
        elif isinstance(param.type, StateParam):
            last = [ns[each.name] for each in kernel.params if each.name in ns][-1]
            args[param.name] = np.full((SLOTS, last), 7, np.float32)
        else:
            assert isinstance(param.type, BufferParam)
            width = n // 32 if param.name in ("ys", "yz") else n
            args[param.name] = poison((rows, width), DTYPES[param.type.dtype])
    return args


@pytest.mark.parametrize(("rows", "k"), [(1, 96), (6, 1120), (17, 576), (40, 64)])
@pytest.mark.parametrize("name", HEADER)
def test_no_bit_depends_on_how_a_matrix_is_stored(
    library: Library, name: FormatName, rows: int, k: int
) -> None:
    entries = [plain for plain in LAID if f"_{name}" in plain]
    assert len(entries) == 19
    for plain in entries:
        kernel = library.kernels.kernels[plain]
        args = given(kernel, name, rows, k)
        again = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in args.items()}
        matrices = [n for n in args if n.startswith("w")]
        library.call(plain, **args)
        library.call(LAID[plain], **{**again, **{n: in_panels(args[n], name) for n in matrices}})
        for n in args.keys() - set(matrices):
            np.testing.assert_array_equal(args[n], again[n], err_msg=f"{plain} {n}")


@pytest.mark.parametrize(("rows", "threads"), [(8, 2), (17, 2), (17, 3), (259, 2)])
@pytest.mark.parametrize("name", HEADER)
def test_no_bit_depends_on_the_threads(
    library: Library, name: FormatName, rows: int, threads: int
) -> None:
    stem = "" if rows > 64 else "panels_"
    for family in ("linear", "parts3"):
        entry = f"{stem}{family}_q_{name}"
        kernel = library.kernels.kernels[entry]
        args = given(kernel, name, rows, 96, 128)
        again = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in args.items()}
        library.call(entry, **args)
        told = ctypes.c_int32.in_dll(library.loaded[kernel.module], "bs_threads")
        assert told.value == 0
        told.value = threads
        try:
            library.call(entry, **again)
        finally:
            told.value = 0
        for n in args:
            np.testing.assert_array_equal(args[n], again[n], err_msg=f"{entry} {n}")


@pytest.mark.parametrize("name", HEADER)
def test_a_matrix_is_laid_in_panels(library: Library, name: FormatName) -> None:
    w, _ = weights(name, 48, 160, np.random.default_rng(1))
    y = poison(w.shape, np.uint8)
    library.call(f"in_panels_{name}", x=w, y=y, rows=48, width=w.shape[1])
    np.testing.assert_array_equal(y, in_panels(w, name))


def test_extreme_codes_do_not_overflow(library: Library) -> None:
    w = np.full((16, 34 * 3), 0x80, np.uint8)
    w.reshape(16, 3, 34)[..., :2] = np.array([1.0], np.float16).view(np.uint8)
    for sign in (1, -1):
        xq, xs, xz = quantize(np.full((5, 96), sign, np.float32))
        y, sizes = poison((5, 16), np.float32), {"rows": 5, "k": 96, "n": 16}
        laid = in_panels(w, "q8_0")
        library.call("panels_linear_q_q8_0", xq=xq, xs=xs, xz=xz, w=laid, y=y, **sizes)
        np.testing.assert_allclose(y, -128 * 96 * sign, rtol=2e-6)
