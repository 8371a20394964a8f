"""The kinds of values an input may want."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Normal:
    """Normal values; rows have length 1 where `unit`."""

    mean: float = 0.0
    std: float = 1.0
    unit: bool = False


@dataclass(frozen=True, slots=True)
class Uniform:
    """Values in [low, high)."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Integers:
    """Integers in [low, high)."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Distinct:
    """Integers below `below`, no two alike in a row where there are enough.

    `padded` rows end in -1 from a random place on, one row in four.
    """

    below: int
    padded: bool = False


@dataclass(frozen=True, slots=True)
class Offsets:
    """Where each sequence begins in a flat array, and `total` at the end.

    No sequence is empty where `total` allows. With a `companion`, another input of offsets that
    count single rows, each sequence has pages of `page` rows enough for as many.
    """

    total: int
    companion: str | None = None
    page: int = 1


@dataclass(frozen=True, slots=True)
class Probabilities:
    """Rows that are positive and sum to 1, most of it on a few hundred values."""


@dataclass(frozen=True, slots=True)
class Coins:
    """True or false."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """Any bit patterns: two four-bit floats to a byte."""


@dataclass(frozen=True, slots=True)
class PackedRows:
    """Pages of eight-bit floats followed by a float32 scale for each row, as bytes."""

    rows: int
    width: int


@dataclass(frozen=True, slots=True)
class Fixed:
    """One number."""

    value: bool | int | float


Recipe = (
    Normal
    | Uniform
    | Integers
    | Distinct
    | Offsets
    | Probabilities
    | Coins
    | Bytes
    | PackedRows
    | Fixed
)
