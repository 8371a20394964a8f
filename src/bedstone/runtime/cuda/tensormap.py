"""The arguments of a tensor map, checked against the memory it is over. Pure."""

from bedstone.errors import KernelError
from bedstone.runtime.cuda.driver import TiledMap
from bedstone.spec.manifest import TensorMap, TmaDType

_DTYPES: dict[TmaDType, tuple[int, int]] = {
    "u8": (0, 8),
    "u16": (1, 16),
    "u32": (2, 32),
    "i32": (3, 32),
    "u64": (4, 64),
    "i64": (5, 64),
    "f16": (6, 16),
    "f32": (7, 32),
    "bf16": (9, 16),
    "tf32": (11, 32),
    "u4packed": (13, 4),
    "u4": (14, 4),
}
"""The driver's number of each element type, and an element's bits."""

_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}
_MOST_EXTENT = 2**32
_MOST_STRIDE = 2**40
_ADDRESS_ALIGN = 16


def tiled_map(tensor: TensorMap, address: int, nbytes: int) -> TiledMap:
    """The tensor over `nbytes` bytes from `address` on; an outermost extent of 0 fills them.

    Raises `KernelError`: it does not fit them, or its address or extents are beyond the hardware.
    """
    if address % _ADDRESS_ALIGN:
        raise KernelError(
            f"a tensor map starts at byte {address % _ADDRESS_ALIGN} of {_ADDRESS_ALIGN}: expected "
            f"a multiple of {_ADDRESS_ALIGN}"
        )
    dims = _filled(tensor, nbytes)
    if not tensor.wrap and _footprint(tensor, dims) > nbytes:
        raise KernelError(
            f"a tensor map of extents {list(dims)} spans {_footprint(tensor, dims)} bytes, "
            f"{nbytes} are left"
        )
    if max(dims) > _MOST_EXTENT or max(tensor.strides, default=0) >= _MOST_STRIDE:
        raise KernelError(
            f"a tensor map of extents {list(dims)} and strides {list(tensor.strides)}: expected "
            f"at most {_MOST_EXTENT} elements and less than {_MOST_STRIDE} bytes"
        )
    return TiledMap(
        dtype=_DTYPES[tensor.dtype][0],
        address=address,
        dims=dims,
        strides=tensor.strides,
        box=tensor.box,
        swizzle=_SWIZZLES[tensor.swizzle],
        promotion=_PROMOTIONS[tensor.l2_promotion],
        oob_nan=tensor.oob_nan,
    )


def _filled(tensor: TensorMap, nbytes: int) -> tuple[int, ...]:
    """The extents, the outermost one as many as the bytes hold where it is 0."""
    *inner, outer = tensor.dims
    if outer:
        return tensor.dims
    left = nbytes - _footprint(tensor, (*inner, 1))
    if left < 0:
        raise KernelError(
            f"a tensor map over {nbytes} bytes does not hold one outermost row of extents {inner}"
        )
    return (*inner, left // tensor.strides[-1] + 1)


def _footprint(tensor: TensorMap, dims: tuple[int, ...]) -> int:
    """Bytes from the first element to the end of the last."""
    row = -(-dims[0] * _DTYPES[tensor.dtype][1] // 8)
    outer = zip(dims[1:], tensor.strides, strict=True)
    return row + sum((extent - 1) * stride for extent, stride in outer)
