"""The buffers a caller writes and reads: what each takes, and where it goes."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CallerError
from bedstone.runtime.device import Memory, Places
from bedstone.runtime.domain import Limits, require_inside
from bedstone.spec.expr import reads
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import BufferKind, Domain

WRITTEN: tuple[BufferKind, ...] = ("input", "inout")
READ: tuple[BufferKind, ...] = ("output", "inout")


class Port(Frozen):
    """A buffer a caller reads or writes; `limits` None where they depend on a call's vars."""

    kind: BufferKind
    memory: Memory
    dtype: "np.dtype[np.generic]"
    shape: tuple[int, ...]
    domain: Domain | None
    limits: Limits | None


class Input:
    """An input written part by part, again and again.

    `values` is the caller's, to be filled in before a `write`. What the buffer is was checked when
    this was made; what goes into it is checked each time.
    """

    __slots__ = ("_bytes", "_copy", "_flat", "_name", "_row", "_scatter", "limits", "values")

    def __init__(
        self,
        name: str,
        port: Port,
        limits: Limits | None,
        copy: Callable[[int, NDArray[np.uint8]], None],
        scatter: Callable[[Places, int, NDArray[np.generic]], None],
    ) -> None:
        self.values = np.zeros(port.shape, port.dtype)
        self._name = name
        self.limits = limits
        self._copy, self._scatter = copy, scatter
        self._row = math.prod(port.shape[1:])
        self._flat = self.values.reshape(-1)
        self._bytes = self._flat.view(np.uint8)

    def write(self, rows: int, first: int = 0) -> None:
        """Copy `rows` entries of the first dimension, from `first` on, to where the device has it.

        Raises `CallerError`: there are not as many, or a value is outside the domain.
        """
        self.write_elements(first * self._row, rows * self._row)

    def write_elements(self, first: int, count: int) -> None:
        """Copy `count` elements, from `first` on in the order of memory.

        Raises `CallerError`: there are not as many, or a value is outside the domain.
        """
        start, stop = first, first + count
        if not 0 <= start <= stop <= self._flat.size:
            raise CallerError(
                f"input `{self._name}` has {self._flat.size} elements, [{start}, {stop}) are not "
                "inside"
            )
        self.require_inside(self._flat[start:stop])
        size = self._flat.itemsize
        self._copy(start * size, self._bytes[start * size : stop * size])

    def put_places(self, places: Places, values: NDArray[np.generic]) -> None:
        """Copy numbers [n] that may go in to places [n].

        Raises `CallerError`: there are no such rows or columns.
        """
        flat, top, bottom, left, right = places
        rows = len(self.values)
        if not (0 <= top <= bottom < rows and 0 <= left <= right < self._row):
            raise CallerError(
                f"input `{self._name}` has {rows} rows of {self._row}, not rows {top} to {bottom} "
                f"with columns {left} to {right}"
            )
        some = values.astype(self._flat.dtype, copy=False)
        self._flat[flat] = some
        self._scatter(places, self._row, some)

    def require_inside(self, values: NDArray[np.generic]) -> None:
        """Accept numbers [n] that may go in: another is a `CallerError`."""
        if self.limits is not None:
            require_inside(self._name, values, self.limits)

    def require_between(self, low: float, high: float) -> None:
        """Accept numbers of which these are the least and the greatest; others: `CallerError`."""
        limits = self.limits
        if limits is not None and not (
            (limits.low is None or limits.low <= low)
            and (limits.high is None or high <= limits.high)
        ):
            raise CallerError(
                f"input `{self._name}` takes {limits.low} to {limits.high}, not {low} to {high}"
            )

    def copy(self, rows: int, first: int = 0) -> None:
        """As `write`, of numbers that were accepted before."""
        each = self._row * self._flat.itemsize
        self._copy(first * each, self._bytes[first * each : (first + rows) * each])

    def put_between(
        self, values: Sequence[int] | NDArray[np.generic], low: float, high: float
    ) -> None:
        """Copy numbers [n] to the front, of which none is less or greater than two.

        Raises `CallerError`: a value may be outside the domain.
        """
        if self.limits is not None and self.limits.monotone:
            self.require_inside(np.asarray(values))
        self.require_between(low, high)
        self.put(values)

    def put(self, values: Sequence[int] | NDArray[np.generic]) -> None:
        """Copy numbers [n] that may go in to the front."""
        count = len(values)
        self._flat[:count] = values
        self._copy(0, self._bytes[: count * self._flat.itemsize])


class Inputs:
    """Inputs whose fronts are written together, again and again, each a row of an array [n, m].

    `parts` are the inputs and which rows they are.
    """

    __slots__ = ("_parts", "_rising")

    def __init__(self, parts: Sequence[tuple[Input, int]]) -> None:
        self._parts = parts
        self._rising = [(p, row) for p, row in parts if p.limits is not None and p.limits.monotone]

    def require_between(self, row: int, low: float, high: float) -> None:
        """Accept numbers in a row of which these are the least and the greatest.

        Raises `CallerError`: others may be outside the domain of an input.
        """
        for part, at in self._parts:
            if at == row:
                part.require_between(low, high)

    def put(self, values: NDArray[np.int32]) -> None:
        """Copy numbers [n, m] that may go in to the fronts.

        Raises `CallerError`: some fall that must not.
        """
        for part, row in self._rising:
            part.require_inside(values[row])
        for part, row in self._parts:
            part.put(values[row])


def depends(domain: Domain) -> bool:
    """Whether the domain's bounds read vars."""
    bounds = (b for b in (domain.min, domain.max) if b is not None and not isinstance(b, float))
    return any(reads(bound) for bound in bounds)


def elements_of(buffer: str, data: NDArray[np.generic] | bytes, port: Port) -> NDArray[np.generic]:
    """The data as elements [n] of the buffer's type.

    Raises `CallerError`: it is of another type or longer than the buffer.
    """
    if not isinstance(data, np.ndarray):
        if len(data) % port.dtype.itemsize:
            raise CallerError(f"{len(data)} bytes are no whole {port.dtype} elements of `{buffer}`")
        data = np.frombuffer(data, port.dtype)
    if data.dtype != port.dtype:
        raise CallerError(f"buffer `{buffer}` takes {port.dtype}, got {data.dtype}")
    if data.size > math.prod(port.shape):
        raise CallerError(
            f"buffer `{buffer}` holds {math.prod(port.shape)} elements, got {data.size}"
        )
    return np.ascontiguousarray(data).reshape(-1)
