"""What a call returned, output by output, and whether it is what the Definition declares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from bedstone.prove.tensors import stored_shape, torch_dtype
from bedstone.spec.axes import Shape
from bedstone.spec.trace import Status


@dataclass(frozen=True, slots=True)
class Expected:
    """One declared output: `shape` is None for a scalar, `target` the input it is written over."""

    name: str
    dtype: str
    shape: Shape | None
    target: str | None = None


class ResultError(Exception):
    """A result is not what was declared; `status` is the outcome it leads to."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


def named_results(result: object, outputs: Sequence[Expected]) -> dict[str, Any]:
    """The returned values by output.

    Args:
        result: One value, a tuple or list of them in order, or a dict by name; None for none.
        outputs: Those declared; what is written over an input need not be returned.

    Returns:
        Each value under its output's name; an output written over an input may be missing.

    Raises:
        ResultError: there are more or fewer, or other names.
    """
    own = [expected.name for expected in outputs if expected.target is None]
    every = [expected.name for expected in outputs]
    if isinstance(result, Mapping):
        if set(result) not in (set(own), set(every)):
            listed = ", ".join(map(str, result))
            raise ResultError("INCORRECT_SHAPE", f"expected outputs {every}, found {listed}")
        return dict(result)
    values = _as_list(result)
    for names in (every, own):
        if len(values) == len(names):
            return dict(zip(names, values, strict=True))
    raise ResultError("INCORRECT_SHAPE", f"expected {len(every)} outputs, found {len(values)}")


def _as_list(result: object) -> list[Any]:
    if result is None:
        return []
    return list(result) if isinstance(result, (tuple, list)) else [result]


def as_tensor(value: object, expected: Expected) -> torch.Tensor:
    """One returned value as a tensor of exactly the declared type.

    Args:
        value: A plain tensor, or a number for an output without axes.
        expected: What was declared.

    Returns:
        A tensor of the declared element type and shape; a scalar as one element.

    Raises:
        ResultError: it is of another class, element type or shape.
    """
    shape = () if expected.shape is None else stored_shape(expected.dtype, expected.shape)
    dtype = torch_dtype(expected.dtype)
    if isinstance(value, (bool, int, float)) and shape == ():
        return torch.tensor(value).to(dtype)
    # a subclass could compute when it is looked at, outside the timed call
    if type(value) is not torch.Tensor:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise ResultError(
            "INCORRECT_DTYPE", f"`{expected.name}`: expected exactly torch.Tensor, found {kind}"
        )
    if tuple(value.shape) != shape:
        raise ResultError(
            "INCORRECT_SHAPE",
            f"`{expected.name}`: expected shape {list(shape)}, found {list(value.shape)}",
        )
    if value.dtype != dtype:
        raise ResultError(
            "INCORRECT_DTYPE",
            f"`{expected.name}`: expected `{expected.dtype}`, found `{value.dtype}`",
        )
    return value
