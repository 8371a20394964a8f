"""Packs: structs passed by value, field by field within their image."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from bedstone.spec.manifest import (
    F32,
    I32,
    I64,
    U8,
    BufferParam,
    BytesParam,
    ExprArg,
    FieldSource,
    Op,
    Pack,
    PackField,
    ParamArg,
    Rank,
    ScalarParam,
    ScratchArg,
    StateParam,
    TensorMap,
    VarArg,
)
from bedstone.verify.arguments import ArgSite
from bedstone.verify.binding import interface
from bedstone.verify.expressions import EXPR_ROWS, ExprSite
from bedstone.verify.facts import Facts
from bedstone.verify.rule import Each, Finding, Place, Rows, Rule
from bedstone.verify.topology import GROUP_USE_ROWS, GroupUse

POINTER_BYTES = 8
SCALAR_BYTES = {"i32": 4, "i64": 8, "f32": 4, "u8": 1}
TENSORMAP_BYTES = 128
TENSORMAP_ALIGNMENT = 64
U32_MAX = 2**32 - 1


@dataclass(frozen=True, slots=True)
class PackSite:
    """A pack bound to a launch parameter."""

    arg: ArgSite
    pack: Pack

    @property
    def place(self) -> Place:
        """The pack's own place."""
        place = self.arg.place
        return Place(place.text, f"{place.path}/pack", place.objects)


@dataclass(frozen=True, slots=True)
class FieldSite:
    """One field of a pack; `width` is in bytes, 0 when unknown."""

    pack: PackSite
    index: int
    field: PackField
    width: int

    @property
    def facts(self) -> Facts:
        """The manifest's facts."""
        return self.pack.arg.site.facts

    @property
    def op(self) -> Op:
        """The op whose interface the field reads."""
        return self.pack.arg.op

    @property
    def place(self) -> Place:
        """The field's own place."""
        return self.pack.place.inner(f"field #{self.index}", f"/fields/{self.index}")

    @property
    def fits(self) -> bool:
        """Whether the field has a width and ends within the pack."""
        end = self.field.at + self.width
        return self.width > 0 and end <= min(self.pack.pack.size, U32_MAX)


def as_pack(site: ArgSite) -> Iterator[PackSite]:
    """The pack bound, if it is one."""
    if isinstance(site.arg, Pack):
        yield PackSite(site, site.arg)


def pack_is_bytes(site: PackSite) -> Iterator[Finding]:
    """A pack is bound to a `bytes<n>` parameter."""
    if not isinstance(site.arg.param, BytesParam):
        yield site.place.finding(f"is a pack, expected an argument for `{site.arg.param}`")


def pack_size(site: PackSite) -> Iterator[Finding]:
    """A pack is as large as its parameter."""
    param = site.arg.param
    if isinstance(param, BytesParam) and param.size != site.pack.size:
        yield site.place.finding(
            f"is a pack of {site.pack.size} bytes, expected {param.size}", at="/size"
        )


def each_field(site: PackSite) -> Iterator[FieldSite]:
    """The pack's fields in order."""
    for index, field in enumerate(site.pack.fields):
        width = _natural_width(site.arg.op, field.source) if field.width is None else field.width
        yield FieldSite(site, index, field, width)


def _natural_width(op: Op, source: FieldSource) -> int:
    match source:
        case ParamArg(param=index):
            return _param_width(op, index)
        case ScratchArg() | I64():
            return 8
        case I32() | F32() | VarArg() | ExprArg() | Rank():
            return 4
        case U8():
            return 1
        case TensorMap():
            return TENSORMAP_BYTES


def _param_width(op: Op, index: int) -> int:
    match interface(op, index):
        case BufferParam() | StateParam():
            return POINTER_BYTES
        case ScalarParam(type=scalar):
            return SCALAR_BYTES[scalar]
        case BytesParam(size=size):
            return size
        case None:
            return 0


def width_known(site: FieldSite) -> Iterator[Finding]:
    """A field has a width."""
    if site.width == 0:
        pointer = "" if site.field.width is None else "/width"
        yield site.place.finding("has no width, expected at least 1 byte", at=pointer)


def field_within(site: FieldSite) -> Iterator[Finding]:
    """A field ends within its pack."""
    if site.width and not site.fits:
        yield site.place.finding(
            f"ends at byte {site.field.at + site.width}, expected at most {site.pack.pack.size}",
            at="/at",
        )


def tensormap_width(site: FieldSite) -> Iterator[Finding]:
    """A tensor map takes 128 bytes."""
    if isinstance(site.field.source, TensorMap) and site.width not in {0, TENSORMAP_BYTES}:
        yield site.place.finding(
            f"is a tensor map of {site.width} bytes, expected {TENSORMAP_BYTES}", at="/width"
        )


def tensormap_aligned(site: FieldSite) -> Iterator[Finding]:
    """A tensor map stands on a multiple of 64 bytes."""
    misaligned = site.width and site.field.at % TENSORMAP_ALIGNMENT
    if isinstance(site.field.source, TensorMap) and misaligned:
        yield site.place.finding(
            f"is a tensor map at {site.field.at}, expected a multiple of {TENSORMAP_ALIGNMENT}",
            at="/at",
        )


def fields_apart(site: PackSite) -> Iterator[Finding]:
    """Fields do not overlap."""
    spans = sorted((f.field.at, f.field.at + f.width, f.index) for f in each_field(site) if f.fits)
    for (_, end, before), (start, _, index) in pairwise(spans):
        if start < end:
            yield site.place.finding(
                f"field #{index} starts at {start}, expected at least {end}, where field "
                f"#{before} ends",
                at=f"/fields/{index}/at",
            )


def field_param_known(site: FieldSite) -> Iterator[Finding]:
    """A field's parameter is one of the interface's."""
    source = site.field.source
    if isinstance(source, ParamArg | TensorMap) and interface(site.op, source.param) is None:
        yield site.place.finding(
            f"reads interface param #{source.param}, but the interface has {len(site.op.params)}"
        )


def field_scratch_known(site: FieldSite) -> Iterator[Finding]:
    """A field's scratch is one of the op's."""
    source = site.field.source
    if isinstance(source, ScratchArg) and source.scratch not in site.op.impl.scratch:
        yield site.place.finding(
            f"names unknown scratch `{source.scratch}`", f"scratch {source.scratch}"
        )


def field_var_known(site: FieldSite) -> Iterator[Finding]:
    """A field's var exists."""
    source = site.field.source
    if isinstance(source, VarArg) and source.var not in site.facts.upper:
        yield site.place.finding(f"names unknown var `{source.var}`", f"var {source.var}")


def field_expr(site: FieldSite) -> Iterator[ExprSite]:
    """The field's expression, if it is one."""
    if isinstance(site.field.source, ExprArg):
        place = site.place
        at = Place(place.text, f"{place.path}/expr", place.objects)
        yield ExprSite(site.facts, at, site.field.source.expr)


def field_group(site: FieldSite) -> Iterator[GroupUse]:
    """The group whose rank the field holds, if it holds one."""
    if isinstance(site.field.source, Rank):
        yield GroupUse(site.facts, site.place, site.field.source.group)


PACK_ROWS: Rows[PackSite] = (
    Rule("Q2", "packs", pack_is_bytes),
    Rule("Q1", "packs", pack_size),
    Each(
        each_field,
        (
            Rule("Q5", "packs", width_known),
            Rule("R1", "packs", tensormap_width),
            Rule("R2", "packs", tensormap_aligned),
            Rule("Q3", "packs", field_within),
        ),
    ),
    Rule("Q4", "packs", fields_apart),
)
FIELD_ROWS: Rows[FieldSite] = (
    Rule("Q6", "packs", field_param_known),
    Rule("Q7", "packs", field_scratch_known),
    Rule("Q8", "packs", field_var_known),
    Each(field_expr, EXPR_ROWS),
    Each(field_group, GROUP_USE_ROWS),
)
