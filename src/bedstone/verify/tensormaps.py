"""Tensor maps: descriptors the device's copy engine accepts, over memory that is there."""

from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.spec.manifest import BufferParam, StateParam, TensorMap
from bedstone.verify.binding import interface
from bedstone.verify.packs import FieldSite
from bedstone.verify.rule import Each, Finding, Place, Rows, Rule
from bedstone.verify.sizes import TMA_BITS, footprint

MAX_RANK = 5
MAX_BOX = 256
ROW_BYTES = 16
SWIZZLES = (0, 32, 64, 128)
L2_PROMOTIONS = (0, 64, 128, 256)


@dataclass(frozen=True, slots=True)
class MapSite:
    """A tensor map in a field of a pack."""

    field: FieldSite
    map: TensorMap

    @property
    def place(self) -> Place:
        """The tensor map's own place."""
        place = self.field.place
        return Place(f"{place.text} tensormap", f"{place.path}/tensormap", place.objects)

    @property
    def bits(self) -> int:
        """Bits of one element."""
        return TMA_BITS[self.map.dtype]


def as_map(site: FieldSite) -> Iterator[MapSite]:
    """The field's tensor map, if it is one."""
    if isinstance(site.field.source, TensorMap):
        yield MapSite(site, site.field.source)


def map_over_memory(site: MapSite) -> Iterator[Finding]:
    """A tensor map stands over a buffer or a state."""
    param = interface(site.field.op, site.map.param)
    if param is not None and not isinstance(param, BufferParam | StateParam):
        yield site.place.finding(
            f"is over interface param #{site.map.param}, `{param}`, expected a buffer or a state",
            at="/param",
        )


def as_over_memory(site: MapSite) -> Iterator[MapSite]:
    """The tensor map, when there is memory for it to describe."""
    if isinstance(interface(site.field.op, site.map.param), BufferParam | StateParam):
        yield site


def map_rank(site: MapSite) -> Iterator[Finding]:
    """A tensor map has 1 to 5 dimensions."""
    if not 1 <= len(site.map.dims) <= MAX_RANK:
        yield site.place.finding(
            f"has {len(site.map.dims)} dims, expected 1 to {MAX_RANK}", at="/dims"
        )


def as_ranked(site: MapSite) -> Iterator[MapSite]:
    """The tensor map, when its rank is one the device has."""
    if 1 <= len(site.map.dims) <= MAX_RANK:
        yield site


def stride_per_outer_dim(site: MapSite) -> Iterator[Finding]:
    """A tensor map has a stride for each dimension but the innermost."""
    found, wanted = len(site.map.strides), len(site.map.dims) - 1
    if found != wanted:
        yield site.place.finding(f"has {found} strides, expected {wanted}", at="/strides")


def box_per_dim(site: MapSite) -> Iterator[Finding]:
    """A box has an extent for each dimension."""
    found, wanted = len(site.map.box), len(site.map.dims)
    if found != wanted:
        yield site.place.finding(f"has {found} box extents, expected {wanted}", at="/box")


def dims_nonzero(site: MapSite) -> Iterator[Finding]:
    """Only the outermost of several dimensions is 0, which spans what the buffer holds."""
    dims = site.map.dims
    if 0 in (dims[:-1] if len(dims) > 1 else dims):
        index = dims.index(0)
        yield site.place.finding(
            f"has dims[{index}] of 0, expected at least 1", at=f"/dims/{index}"
        )


def box_in_range(site: MapSite) -> Iterator[Finding]:
    """A box extent is from 1 to 256."""
    for index, extent in enumerate(site.map.box):
        if not 1 <= extent <= MAX_BOX:
            yield site.place.finding(
                f"has box[{index}] of {extent}, expected 1 to {MAX_BOX}", at=f"/box/{index}"
            )
            return


def strides_aligned(site: MapSite) -> Iterator[Finding]:
    """A stride is a positive multiple of 16 bytes."""
    for index, stride in enumerate(site.map.strides):
        if stride == 0 or stride % ROW_BYTES:
            yield site.place.finding(
                f"has strides[{index}] of {stride}, expected a positive multiple of {ROW_BYTES}",
                at=f"/strides/{index}",
            )
            return


def row_aligned(site: MapSite) -> Iterator[Finding]:
    """A row is a multiple of 16 bytes."""
    if site.map.dims[0] * site.bits % (8 * ROW_BYTES):
        yield site.place.finding(
            f"has dims[0] of {site.map.dims[0]} {site.map.dtype}, expected a multiple of "
            f"{ROW_BYTES} bytes",
            at="/dims/0",
        )


def box_row_aligned(site: MapSite) -> Iterator[Finding]:
    """A row of the box is a multiple of 16 bytes."""
    row = _box_row_bytes(site)
    if row % ROW_BYTES:
        yield site.place.finding(
            f"has a box row of {row} bytes, expected a multiple of {ROW_BYTES}", at="/box/0"
        )


def box_row_swizzles(site: MapSite) -> Iterator[Finding]:
    """A row of the box fits the span that is swizzled."""
    row = _box_row_bytes(site)
    if site.map.swizzle and row > site.map.swizzle:
        yield site.place.finding(
            f"has a box row of {row} bytes, expected at most the swizzle's {site.map.swizzle}",
            at="/box/0",
        )


def _box_row_bytes(site: MapSite) -> int:
    return site.map.box[0] * site.bits // 8 if site.map.box else 0


def swizzle_known(site: MapSite) -> Iterator[Finding]:
    """A swizzle is one the device has."""
    if site.map.swizzle not in SWIZZLES:
        yield site.place.finding(
            f"has swizzle {site.map.swizzle}, expected one of {list(SWIZZLES)}", at="/swizzle"
        )


def l2_promotion_known(site: MapSite) -> Iterator[Finding]:
    """An L2 promotion is one the device has."""
    if site.map.l2_promotion not in L2_PROMOTIONS:
        yield site.place.finding(
            f"has l2_promotion {site.map.l2_promotion}, expected one of {list(L2_PROMOTIONS)}",
            at="/l2_promotion",
        )


def wraps_as_declared(site: MapSite) -> Iterator[Finding]:
    """Strides leave 64 bits exactly when `wrap` says that they do."""
    spans = footprint(site.map) is not None
    if site.map.wrap and spans:
        yield site.place.finding("declares `wrap`, but its strides do not overflow", at="/wrap")
    elif not site.map.wrap and not spans:
        yield site.place.finding("has strides that overflow, expected `wrap` with them")


MAP_ROWS: Rows[FieldSite] = (
    Each(
        as_map,
        (
            Rule("R14", "tensormaps", map_over_memory),
            Each(
                as_over_memory,
                (
                    Rule("R3", "tensormaps", map_rank),
                    Each(
                        as_ranked,
                        (
                            Rule("R4", "tensormaps", stride_per_outer_dim),
                            Rule("R5", "tensormaps", box_per_dim),
                            Rule("R6", "tensormaps", dims_nonzero),
                            Rule("R7", "tensormaps", box_in_range),
                            Rule("R8", "tensormaps", strides_aligned),
                            Rule("R9", "tensormaps", row_aligned),
                            Rule("R10", "tensormaps", box_row_aligned),
                            Rule("R11", "tensormaps", box_row_swizzles),
                            Rule("R12", "tensormaps", swizzle_known),
                            Rule("R13", "tensormaps", l2_promotion_known),
                        ),
                    ),
                    Rule("R15", "tensormaps", wraps_as_declared),
                ),
            ),
        ),
    ),
)
