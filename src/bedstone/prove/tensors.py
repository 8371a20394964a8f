"""Element types and bytes: how a tensor of a Definition lies in memory."""

from math import prod
from mmap import mmap

import torch

from bedstone.errors import DefinitionError
from bedstone.spec.axes import Shape
from bedstone.spec.element import ELEMENTS

Made = torch.Tensor | bool | int | float
"""The value of an input."""

DTYPES: dict[str, torch.dtype] = {
    "float4_e2m1": torch.float4_e2m1fn_x2,
    **{
        name: getattr(torch, name)
        for name, element in ELEMENTS.items()
        if hasattr(torch, name) and element.bits
    },
}
_FOUR_BIT = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_NAN_BYTE, _ODD_BYTE = 0xFF, 0xA5


def torch_dtype(name: str) -> torch.dtype:
    """PyTorch's element type; a `DefinitionError` for one that only stands for an unknown."""
    if name not in DTYPES:
        raise DefinitionError(f"`{name}` is not an element type that can be made")
    return DTYPES[name]


def stored_shape(name: str, shape: Shape) -> Shape:
    """The shape of the tensor that holds values of `shape`: half as wide for packed floats."""
    if name != "float4_e2m1":
        return shape
    if not shape or shape[-1] % 2:
        raise DefinitionError(f"expected an even last axis for `{name}`, found shape {shape}")
    return (*shape[:-1], shape[-1] // 2)


def nbytes(name: str, shape: Shape) -> int:
    """Bytes of a tensor of this element type and shape, in values."""
    return prod(stored_shape(name, shape)) * torch_dtype(name).itemsize


def view(buffer: mmap, offset: int, name: str, shape: Shape) -> torch.Tensor:
    """A tensor over part of a buffer, sharing its memory."""
    count = nbytes(name, shape)
    dtype, stored = torch_dtype(name), stored_shape(name, shape)
    if count == 0:
        return torch.empty(stored, dtype=dtype)
    raw = torch.frombuffer(buffer, dtype=torch.uint8, count=count, offset=offset)
    return raw.view(dtype).view(stored) if stored else raw.view(dtype)[0]


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a contiguous tensor, as one row that shares its memory."""
    row = tensor.reshape(-1)
    # a single element is contiguous whatever its stride, and has to say so to be seen as bytes
    return row.as_strided(row.shape, (1,)).view(torch.uint8)


def poison_byte(name: str) -> int:
    """What unwritten memory is filled with: NaN where the type has one, else an odd pattern."""
    element = ELEMENTS[name]
    return _NAN_BYTE if element.kind == "float" and element.bits >= 8 else _ODD_BYTE


def as_numbers(tensor: torch.Tensor) -> torch.Tensor:
    """The values of a floating tensor as float32, or float64 where it is that."""
    if tensor.dtype == torch.float4_e2m1fn_x2:
        return _unpacked(tensor)
    return tensor if tensor.dtype == torch.float64 else tensor.to(torch.float32)


def _unpacked(tensor: torch.Tensor) -> torch.Tensor:
    """Two values a byte, the low half first."""
    raw = tensor.view(torch.uint8)
    codes = torch.stack((raw & 15, raw >> 4), dim=-1).flatten(-2)
    table = torch.tensor([*_FOUR_BIT, *(-value for value in _FOUR_BIT)])
    return table[codes.long()]
