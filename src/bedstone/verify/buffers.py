"""Shapes, of buffers and of an op's scratch alike."""

from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.spec.dtype import DType
from bedstone.spec.manifest import Buffer, Dim
from bedstone.verify.facts import Facts, Named
from bedstone.verify.rule import Each, Finding, Place, Rows, Rule
from bedstone.verify.sizes import array_bytes


@dataclass(frozen=True, slots=True)
class Shaped:
    """A typed array of the manifest."""

    facts: Facts
    place: Place
    dtype: DType
    shape: tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class Extent:
    """One extent of an array."""

    shaped: Shaped
    index: int
    dim: Dim


def as_shaped(buffer: Named[Buffer]) -> Iterator[Shaped]:
    """The buffer as an array."""
    yield Shaped(buffer.facts, buffer.place, buffer.value.dtype, buffer.value.shape)


def each_extent(shaped: Shaped) -> Iterator[Extent]:
    """The array's extents, outermost first."""
    for index, dim in enumerate(shaped.shape):
        yield Extent(shaped, index, dim)


def has_extents(shaped: Shaped) -> Iterator[Finding]:
    """A shape has at least one extent."""
    if not shaped.shape:
        yield shaped.place.finding("has shape [], expected at least one extent", at="/shape")


def extent_nonzero(extent: Extent) -> Iterator[Finding]:
    """A constant extent is at least 1."""
    if extent.dim == 0:
        yield extent.shaped.place.finding(
            f"has extent #{extent.index} of 0, expected at least 1", at=f"/shape/{extent.index}"
        )


def extent_known(extent: Extent) -> Iterator[Finding]:
    """An extent given by name is a var."""
    if isinstance(extent.dim, str) and extent.dim not in extent.shaped.facts.upper:
        yield extent.shaped.place.finding(
            f"has extent #{extent.index} of unknown var `{extent.dim}`",
            f"var {extent.dim}",
            at=f"/shape/{extent.index}",
        )


def size_fits(shaped: Shaped) -> Iterator[Finding]:
    """An array is smaller than 2^64 bytes with every var at its max."""
    upper = shaped.facts.upper
    measurable = all(dim in upper if isinstance(dim, str) else dim for dim in shaped.shape)
    if shaped.shape and measurable and array_bytes(shaped.dtype, shaped.shape, upper) is None:
        yield shaped.place.finding(
            "has 2^64 bytes or more with every var at its max, expected fewer", at="/shape"
        )


SHAPE_ROWS: Rows[Shaped] = (
    Rule("B1", "buffers", has_extents),
    Each(
        each_extent,
        (Rule("B2", "buffers", extent_nonzero), Rule("B3", "buffers", extent_known)),
    ),
    Rule("B4", "buffers", size_fits),
)
BUFFER_SHAPE_ROWS: Rows[Named[Buffer]] = (Each(as_shaped, SHAPE_ROWS),)
