"""Sizes in bytes, in checked u64: arrays of vars and the span of a tensor map."""

from collections.abc import Mapping

from bedstone.spec.dtype import DTYPE_BYTES, DType
from bedstone.spec.expr import U64_MAX, ExprError, evaluate
from bedstone.spec.manifest import Dim, Expr, HostTensor, TensorMap, TmaDType

TMA_BITS: dict[TmaDType, int] = {
    "u8": 8,
    "u16": 16,
    "u32": 32,
    "i32": 32,
    "u64": 64,
    "i64": 64,
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "tf32": 32,
    "u4": 4,
    "u4packed": 4,
}


def value_at(expr: Expr, env: Mapping[str, int]) -> int | None:
    """The expression's value in checked u64; None when it has none."""
    try:
        return evaluate(expr, env)
    except ExprError:
        return None


def array_bytes(dtype: DType, shape: tuple[Dim, ...], env: Mapping[str, int]) -> int | None:
    """Bytes of an array; None without extents, with a bad one, or when the size leaves u64."""
    if not shape or 0 in shape:
        return None
    size = DTYPE_BYTES[dtype]
    for dim in shape:
        extent = env.get(dim) if isinstance(dim, str) else dim
        if extent is None:
            return None
        size *= extent
        if size > U64_MAX:
            return None
    return size


def row_span(host: HostTensor) -> int | None:
    """Bytes one outermost row of a host tensor spans; None when they leave u64.

    An outermost extent of 0 is the host's count and spans as 1; an inner 0 has no span.
    """
    extents = (host.shape[0] or 1, *host.shape[1:])
    if 0 in extents:
        return None
    last = sum((n - 1) * stride for n, stride in zip(extents, host.strides, strict=True))
    span = (last + 1) * DTYPE_BYTES[host.dtype]
    return span if span <= U64_MAX else None


def footprint(tensor: TensorMap) -> int | None:
    """Bytes a tensor map reaches past its base; None when its strides leave u64 or make no sense.

    An outermost extent of 0 takes whatever the buffer holds and adds nothing.
    """
    dims, strides = tensor.dims, tensor.strides
    if not dims or len(strides) != len(dims) - 1 or 0 in dims[1:-1]:
        return None
    row = -(-dims[0] * TMA_BITS[tensor.dtype] // 8)
    span = row + sum((n - 1) * stride for n, stride in zip(dims[1:], strides, strict=True) if n)
    return span if span <= U64_MAX else None
