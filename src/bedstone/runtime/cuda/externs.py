"""The matrix products the runtime has built in: their arguments, sizes and bounds. Pure.

All matrices are row-major: C[m, n] = A[m, k] · W[n, k]ᵀ. A row stride that is not given is the
row's own length; a product with no row, no column or no term is none at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from bedstone.errors import KernelError
from bedstone.runtime.device import BuiltinUse
from bedstone.runtime.lower import Kernel
from bedstone.spec.manifest import BufferParam, ParamType, ScalarParam, StateParam

_FP8_K = 16


@dataclass(frozen=True, slots=True)
class Product:
    """One built-in: the bytes of an element of A and W and of C, and what it accepts.

    `scales` is how many scale pointers follow the three matrices, `least` and `most` how many
    arguments there are. `adds` to C instead of overwriting it.
    """

    entry: str
    operand_bytes: int
    result_bytes: int
    least: int
    most: int
    scales: int = 0
    adds: bool = False
    lt: bool = True

    @property
    def pointers(self) -> int:
        """How many arguments are addresses; they come first."""
        return 3 + self.scales


PRODUCTS = {
    product.entry: product
    for product in (
        Product("extern:cublaslt_bf16_tn", 2, 2, 6, 8),
        Product("extern:cublaslt_bf16_tn_acc", 2, 2, 6, 8, adds=True),
        Product("extern:cublas_bf16_tn_f32", 2, 4, 6, 7, lt=False),
        Product("extern:cublaslt_fp8_tn", 1, 2, 8, 9, scales=2),
        Product("extern:cublaslt_fp8_tn_f32", 1, 4, 8, 9, scales=2),
    )
}
_COLLECTIVES = "extern:nccl_"


@dataclass(frozen=True, slots=True)
class Size:
    """The extents of one product, and how many elements lie from row to row of C and of A."""

    m: int
    n: int
    k: int
    ldc: int
    lda: int

    @property
    def empty(self) -> bool:
        """Whether there is nothing to compute."""
        return prod((self.m, self.n, self.k)) == 0


def product_of(kernel: Kernel) -> Product:
    """The built-in that a launch names, with as many arguments of the kinds it takes.

    Raises `KernelError`: there is none of that name, or the arguments are others.
    """
    product = PRODUCTS.get(kernel.entry)
    if product is None:
        if kernel.entry.startswith(_COLLECTIVES):
            raise KernelError(
                f"unsupported extern `{kernel.entry}`: a collective needs a group of processes, "
                "and this one runs alone"
            )
        known = ", ".join(f"`{name}`" for name in PRODUCTS)
        raise KernelError(f"unsupported extern `{kernel.entry}`: the cuda device has {known}")
    _require_params(product, kernel.params)
    return product


def size_of(product: Product, numbers: Sequence[int]) -> Size:
    """The size that a launch's numbers m, n, k, [ldc], [lda] say.

    Raises `KernelError`: rows would overlap, or the element type does not allow the extent.
    """
    m, n, k = numbers[:3]
    ldc = numbers[3] if len(numbers) > 3 else n
    lda = numbers[4] if len(numbers) > 4 else k
    if min(m, n, k) < 0 or max(m, n, k, ldc, lda) >= 2**31:
        raise KernelError(f"a product of m={m}, n={n}, k={k}: expected 0 to 2147483647 each")
    if ldc < n or lda < k:
        raise KernelError(
            f"a product of n={n}, k={k} has rows of C {ldc} and of A {lda} elements apart: "
            f"expected {n} and {k} at least"
        )
    if product.scales and k % _FP8_K:
        raise KernelError(f"a product in fp8 of k={k}: expected a multiple of {_FP8_K}")
    return Size(m, n, k, ldc, lda)


def require_room(product: Product, use: BuiltinUse) -> None:
    """Accept a launch whose operands hold what it reads and writes at its largest.

    Raises `KernelError`: one is too small.
    """
    size = _sized(product, use.largest, use.site)
    if size.empty:
        return
    needed = {
        "A": ((size.m - 1) * size.lda + size.k) * product.operand_bytes,
        "W": size.n * size.k * product.operand_bytes,
        "C": ((size.m - 1) * size.ldc + size.n) * product.result_bytes,
    }
    needed |= dict.fromkeys(("the scale of A", "the scale of W")[: product.scales], 4)
    for (name, wanted), room in zip(needed.items(), use.room, strict=True):
        if wanted > room:
            raise KernelError(
                f"{use.site}: {name} takes {wanted} bytes at m={size.m}, n={size.n}, k={size.k}, "
                f"{room} are left of its buffer"
            )


def reachable_sizes(product: Product, use: BuiltinUse) -> tuple[Size, ...]:
    """Every size that is not empty at which a launch can run.

    Raises `KernelError`: one is no size of the product.
    """
    sizes = (_sized(product, numbers, use.site) for numbers in use.reachable)
    return tuple(size for size in sizes if not size.empty)


def _sized(product: Product, numbers: Sequence[int], site: str) -> Size:
    try:
        return size_of(product, numbers)
    except KernelError as error:
        raise KernelError(f"{site}: {error}") from error


def _require_params(product: Product, params: tuple[ParamType, ...]) -> None:
    if not product.least <= len(params) <= product.most:
        scales = ", a_scale, w_scale" * bool(product.scales)
        raise KernelError(
            f"`{product.entry}`: extern gemm takes {product.least}..={product.most} args "
            f"(a, w, c{scales}, m, n, k, then optional row strides), got {len(params)}"
        )
    for index, param in enumerate(params):
        pointer = isinstance(param, BufferParam | StateParam)
        integer = isinstance(param, ScalarParam) and param.type in {"i32", "i64"}
        if not (pointer if index < product.pointers else integer):
            wanted = "a pointer" if index < product.pointers else "an i32 or i64"
            raise KernelError(f"`{product.entry}`: arg #{index} is `{param}`, expected {wanted}")
