"""The parameters of the kernels that know positions or heads."""

from bedstone.build.bind import read, sizes, values, window, write
from bedstone.build.operand import (
    Cache,
    Count,
    Int,
    Io,
    Operands,
    Rotation,
    Size,
    Vector,
    Weight,
)
from bedstone.lane.launch import Attending, Attention, FlatAttention, HeadProduct, Rope

_KIND_CODE = {"neox": 0, "pair": 1}


def rope(launch: Rope) -> Operands:
    """Rotations."""
    norm = launch.sides[0].norm
    return {
        "position": Io("position"),
        "cos": Rotation(launch.table, "cos"),
        "sin": Rotation(launch.table, "sin"),
        "rows": Count(launch.rows),
        **_sides(launch),
        **sizes(
            head_dim=launch.head_dim,
            rot=launch.rot,
            kind=_KIND_CODE[launch.kind],
            offset=launch.offset,
        ),
        **({} if norm is None else sizes(eps=float(norm.eps), plus_one=norm.plus_one)),
    }


def _sides(launch: Rope) -> Operands:
    out: Operands = {}
    for i, side in enumerate(launch.sides):
        suffix = "" if len(launch.sides) == 1 else str(i)
        out |= {f"x{suffix}": values(side.x), f"heads{suffix}": Int(side.heads)}
        out |= window(side.x, side.heads * launch.head_dim, f"x{suffix}")
        out |= write(side.dst, suffix)
        if side.norm is not None:
            out[f"w{suffix}"] = Vector(side.norm.w)
    return out


def attention(launch: Attention) -> Operands:
    """Attention over cached rows."""
    out: Operands = {"q": values(launch.q), "k": Cache(launch.k.table), **_attended(launch)}
    if launch.v is not None:
        out["v"] = Cache(launch.v.table)
    if launch.gate is not None:
        width = launch.heads * launch.dv
        out |= {"gate": values(launch.gate), **window(launch.gate, width, "gate")}
    if launch.split is not None:
        out |= {"qt": values(launch.split.tail), **sizes(own=launch.split.own)}
    return out


def _attended(launch: Attending) -> Operands:
    return {
        "position": Io("position"),
        "pages": Io("pages"),
        "rows": Count(launch.rows),
        "page": Size("page"),
        "pages_width": Size("pages_width"),
        **write(launch.dst),
        **sizes(
            heads=launch.heads,
            groups=launch.groups,
            dk=launch.dk,
            dv=launch.dv,
            scale=float(launch.scale),
            window=launch.window or 0,
            softcap=float(launch.softcap or 0.0),
        ),
    }


def flat_attention(launch: FlatAttention) -> Operands:
    """Attention over what every cached row was made into."""
    own = launch.dk if launch.tail is None else launch.tail.own
    out: Operands = {
        "q": values(launch.q),
        "k": values(launch.k),
        "v": values(launch.v),
        **_units("k", launch.k.window is None, window(launch.k, launch.groups * own, "k"), own),
        **_units(
            "v",
            launch.v.window is None,
            window(launch.v, launch.groups * launch.dv, "v"),
            launch.dv,
        ),
        **_attended(launch),
    }
    if launch.tail is not None:
        tail = launch.tail
        out["kt"] = Cache(tail.table.table)
        out |= sizes(own=tail.own, pitch=tail.pitch, column=tail.first)
    return out


def _units(name: str, dense: bool, lies: Operands, width: int) -> Operands:  # noqa: FBT001
    """Groups one after another, where the tensor is no part of another."""
    return lies | sizes(**{f"{name}_unit": width}) if dense else lies


def head_product(launch: HeadProduct) -> Operands:
    """A product of each head."""
    n, k = (launch.m.k, launch.m.n) if launch.transposed else (launch.m.n, launch.m.k)
    return {
        **read(launch.x),
        **window(launch.x, launch.m.count * k),
        "w": Weight(launch.m.const),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(heads=launch.m.count, k=k, n=n),
    }
