"""cuBLASLt and cuBLAS, found in NVIDIA's wheels or on the system, and products prepared on them.

The libraries are column-major: a row-major C = A · Wᵀ is their Cᵀ[n, m] = W · Aᵀ with W transposed.
A product's descriptors and algorithm are made once for each size and kept; enqueuing one is a
single call. The workspace is one piece of memory taken when the libraries are first needed.
"""

import ctypes
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import DeviceError, KernelError, TargetError
from bedstone.runtime.cuda.externs import Product, Size, size_of
from bedstone.spec.manifest import GemmAlgo

WORKSPACE_BYTES = 32 * 2**20
_SYSTEM_NAMES = ("{0}.so.13", "{0}.so.12", "{0}.so")

_R_32F, _R_16BF, _R_8F_E4M3 = 0, 14, 28
_COMPUTE_32F = 68
_TRANSPOSED, _PLAIN = 1, 0
_TENSOR_OP_MATH, _DEFAULT_TENSOR_OP = 1, 99
_TRANSA, _TRANSB, _A_SCALE, _B_SCALE = 3, 4, 17, 18
_PREFERENCE_WORKSPACE = 1
_ALIGNMENTS = (5, 6, 7, 8)
_MOST_ALIGNMENT = 256
_ONE, _ZERO = ctypes.c_float(1.0), ctypes.c_float(0.0)

_ALGO_FIELDS = (
    ("tile", 1, ctypes.c_uint32),
    ("split_k", 2, ctypes.c_int32),
    ("reduction", 3, ctypes.c_uint32),
    ("swizzle", 4, ctypes.c_uint32),
    ("custom", 5, ctypes.c_uint32),
    ("stages", 6, ctypes.c_uint32),
    ("inner_shape", 7, ctypes.c_uint16),
    ("cluster_shape", 8, ctypes.c_uint16),
)
"""A pinned algorithm's members, the library's number of each and its type."""


class _Algo(ctypes.Structure):
    _fields_ = (("data", ctypes.c_uint64 * 8),)


class _Heuristic(ctypes.Structure):
    _fields_ = (
        ("algo", _Algo),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """The descriptors of one product at one size."""

    operation: ctypes.c_void_p
    layouts: tuple[ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    algo: _Algo


class Blas:
    """Both libraries on one stream. `workspace` is device memory of `WORKSPACE_BYTES`."""

    def __init__(self, stream: int, workspace: int) -> None:
        self._stream = stream
        self._workspace = workspace
        self._lt = _Library("libcublasLt")
        self._classic = _Library("libcublas")
        self._lt_handle = self._lt.made("cublasLtCreate")
        self._handle = self._classic.made("cublasCreate_v2")
        self._plans: list[_Plan] = []
        self._classic.call("cublasSetStream_v2", self._handle, _pointer(stream))
        self._classic.call("cublasSetMathMode", self._handle, _TENSOR_OP_MATH)
        self._classic.call(
            "cublasSetWorkspace_v2", self._handle, _pointer(workspace),
            ctypes.c_size_t(WORKSPACE_BYTES),
        )  # fmt: skip

    def close(self) -> None:
        """Let plans and handles go."""
        for plan in self._plans:
            self._end(plan)
        self._lt.library.cublasLtDestroy(self._lt_handle)
        self._classic.library.cublasDestroy_v2(self._handle)

    def enqueuer(
        self, product: Product, algo: GemmAlgo | None
    ) -> Callable[[NDArray[np.uint64]], int]:
        """What enqueues a product, called with the words of a launch's arguments."""
        plans: dict[tuple[int, ...], tuple[Size, _Plan | None]] = {}

        def enqueue(words: NDArray[np.uint64]) -> int:
            given = words.tolist()
            key = (*given[3:], *map(_alignment, given[:3]))
            if key not in plans:
                size = size_of(product, given[product.pointers :])
                wanted = product.lt and not size.empty
                plans[key] = size, self._kept_plan(product, size, algo, given) if wanted else None
            size, plan = plans[key]
            if size.empty:
                return 0
            if plan is None:
                return self._gemm(size, given)
            return self._matmul(product, plan, given)

        return enqueue

    def check(self, product: Product, algo: GemmAlgo, sizes: tuple[Size, ...], site: str) -> None:
        """Accept a pinned algorithm that runs at all of the sizes within the workspace.

        Raises `KernelError`: the library refuses it at one.
        """
        for size in sizes:
            try:
                operation = self._operation(())
                layouts = self._layouts(product, size)
                plan = _Plan(operation, layouts, self._pinned(product, algo, operation, layouts))
                self._end(plan)
            except DeviceError as error:
                raise KernelError(
                    f"{site}: the pinned algorithm {algo.id} does not run at m={size.m}, "
                    f"n={size.n}, k={size.k}: {error}"
                ) from error

    def _matmul(self, product: Product, plan: _Plan, given: list[int]) -> int:
        beta = _ONE if product.adds else _ZERO
        a, w, c = (_pointer(address) for address in given[:3])
        left, right, result = plan.layouts
        self._lt.call(
            "cublasLtMatmul", self._lt_handle, plan.operation,
            ctypes.byref(_ONE), w, left, a, right, ctypes.byref(beta), c, result, c, result,
            ctypes.byref(plan.algo),
            _pointer(self._workspace), ctypes.c_size_t(WORKSPACE_BYTES), _pointer(self._stream),
        )  # fmt: skip
        return 0

    def _gemm(self, size: Size, given: list[int]) -> int:
        a, w, c = (_pointer(address) for address in given[:3])
        self._classic.call(
            "cublasGemmEx", self._handle, _TRANSPOSED, _PLAIN, size.n, size.m, size.k,
            ctypes.byref(_ONE), w, _R_16BF, size.k, a, _R_16BF, size.lda,
            ctypes.byref(_ZERO), c, _R_32F, size.ldc, _COMPUTE_32F, _DEFAULT_TENSOR_OP,
        )  # fmt: skip
        return 0

    def _kept_plan(
        self, product: Product, size: Size, algo: GemmAlgo | None, given: list[int]
    ) -> _Plan:
        operation = self._operation(tuple(given[3 : product.pointers]))
        layouts = self._layouts(product, size)
        if algo is None:
            a, w, c = map(_alignment, given[:3])
            found = self._first_choice(operation, layouts, (w, a, c, c))
        else:
            found = self._pinned(product, algo, operation, layouts)
        self._plans.append(_Plan(operation, layouts, found))
        return self._plans[-1]

    def _layouts(
        self, product: Product, size: Size
    ) -> tuple[ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]:
        operand, result = _dtypes(product)
        return (
            self._layout(operand, size.k, size.n, size.k),
            self._layout(operand, size.k, size.m, size.lda),
            self._layout(result, size.n, size.m, size.ldc),
        )

    def _operation(self, scales: tuple[int, ...]) -> ctypes.c_void_p:
        operation = self._lt.made("cublasLtMatmulDescCreate", _COMPUTE_32F, _R_32F)
        attributes: list[tuple[int, Any]] = [
            (_TRANSA, ctypes.c_int32(_TRANSPOSED)),
            (_TRANSB, ctypes.c_int32(_PLAIN)),
        ]
        # the library's first operand is W
        attributes += zip((_B_SCALE, _A_SCALE), map(_pointer, scales), strict=False)
        for which, value in attributes:
            self._lt.call(
                "cublasLtMatmulDescSetAttribute", operation, which, ctypes.byref(value),
                ctypes.c_size_t(ctypes.sizeof(value)),
            )  # fmt: skip
        return operation

    def _layout(self, dtype: int, rows: int, cols: int, pitch: int) -> ctypes.c_void_p:
        return self._lt.made(
            "cublasLtMatrixLayoutCreate", dtype, ctypes.c_uint64(rows), ctypes.c_uint64(cols),
            ctypes.c_int64(pitch),
        )  # fmt: skip

    def _first_choice(
        self,
        operation: ctypes.c_void_p,
        layouts: tuple[ctypes.c_void_p, ...],
        alignments: tuple[int, ...],
    ) -> _Algo:
        """The library's own first answer for operands that are aligned so."""
        preference = self._lt.made("cublasLtMatmulPreferenceCreate")
        limits: list[tuple[int, Any]] = [
            (_PREFERENCE_WORKSPACE, ctypes.c_size_t(WORKSPACE_BYTES)),
            *zip(_ALIGNMENTS, map(ctypes.c_uint32, alignments), strict=True),
        ]
        found, count = _Heuristic(), ctypes.c_int()
        left, right, result = layouts
        try:
            for which, limit in limits:
                self._lt.call(
                    "cublasLtMatmulPreferenceSetAttribute", preference, which, ctypes.byref(limit),
                    ctypes.c_size_t(ctypes.sizeof(limit)),
                )  # fmt: skip
            self._lt.call(
                "cublasLtMatmulAlgoGetHeuristic", self._lt_handle, operation, left, right, result,
                result, preference, 1, ctypes.byref(found), ctypes.byref(count),
            )  # fmt: skip
        finally:
            self._lt.library.cublasLtMatmulPreferenceDestroy(preference)
        if not count.value:
            raise DeviceError("cuBLASLt has no algorithm for this product")
        algo: _Algo = found.algo
        return algo

    def _pinned(
        self,
        product: Product,
        algo: GemmAlgo,
        operation: ctypes.c_void_p,
        layouts: tuple[ctypes.c_void_p, ...],
    ) -> _Algo:
        operand, result = _dtypes(product)
        made, found = _Algo(), _Heuristic()
        self._lt.call(
            "cublasLtMatmulAlgoInit", self._lt_handle, _COMPUTE_32F, _R_32F, operand, operand,
            result, result, algo.id, ctypes.byref(made),
        )  # fmt: skip
        for name, which, type_ in _ALGO_FIELDS:
            value = type_(getattr(algo, name))
            self._lt.call(
                "cublasLtMatmulAlgoConfigSetAttribute", ctypes.byref(made), which,
                ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)),
            )  # fmt: skip
        left, right, target = layouts
        self._lt.call(
            "cublasLtMatmulAlgoCheck", self._lt_handle, operation, left, right, target, target,
            ctypes.byref(made), ctypes.byref(found),
        )  # fmt: skip
        if found.workspace > WORKSPACE_BYTES:
            raise DeviceError(
                f"it takes a workspace of {found.workspace} bytes, {WORKSPACE_BYTES} are there"
            )
        return made

    def _end(self, plan: _Plan) -> None:
        self._lt.library.cublasLtMatmulDescDestroy(plan.operation)
        for layout in plan.layouts:
            self._lt.library.cublasLtMatrixLayoutDestroy(layout)


class _Library:
    """A loaded library whose calls answer with a status."""

    def __init__(self, name: str) -> None:
        self.library = _found(name)

    def call(self, function: str, *args: object) -> None:
        """Call a function.

        Raises `DeviceError`: it failed.
        """
        status = getattr(self.library, function)(*args)
        if status:
            raise DeviceError(f"`{function}` answered with status {status}")

    def made(self, function: str, *args: object) -> ctypes.c_void_p:
        """The object that a function makes."""
        made = ctypes.c_void_p()
        self.call(function, ctypes.byref(made), *args)
        return made


def _found(name: str) -> ctypes.CDLL:
    tried = [*_wheel_libraries(name), *(spelled.format(name) for spelled in _SYSTEM_NAMES)]
    for path in tried:
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise TargetError(
        f"no `{name}`: the package `nvidia-cublas` is not installed and the system has none; "
        "install it with `pip install 'bedstone[cuda]'`"
    )


def _wheel_libraries(name: str) -> Iterator[str]:
    """Where wheels of any CUDA version put a library, the newest first."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or ():
        yield from map(str, sorted(Path(folder).glob(f"*/lib/{name}.so.*"), reverse=True))


def _dtypes(product: Product) -> tuple[int, int]:
    """The library's number for the element type of A and W, and of C."""
    operand = _R_16BF if product.operand_bytes == 2 else _R_8F_E4M3
    return operand, _R_16BF if product.result_bytes == 2 else _R_32F


def _alignment(address: int) -> int:
    """The largest power of two that divides an address, as far as the library cares."""
    return min(address & -address, _MOST_ALIGNMENT)


def _pointer(address: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(address)
