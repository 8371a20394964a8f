"""What each launch of a schedule hands its kernel, by the kernel's own parameter names.

The lane names tensors, constants and tables; a kernel of the library names parameters. This module
is where the two meet: `operands` returns the meaning of each parameter, and nothing about where it
lies, which `bedstone.build.placement` decides, or about order, which the library's catalog knows.
"""

from collections.abc import Callable, Iterable
from typing import Any

from bedstone.build.operand import (
    Cache,
    Count,
    Elements,
    Int,
    Io,
    Operand,
    Operands,
    Quant,
    QuantPiece,
    Real,
    Role,
    Rotation,
    Size,
    Values,
    Vector,
    Weight,
)
from bedstone.errors import CallerError
from bedstone.graph.step import AtParam, Fixed, RowSel
from bedstone.lane.launch import (
    ArgMax,
    Attention,
    Dst,
    Eltwise,
    Embed,
    Glu,
    Launch,
    Norm,
    Parts,
    Product,
    Quantize,
    Read,
    Rope,
    RopeSide,
    SetRows,
    TakeRow,
    ToBuf,
    ToRows,
    ToScratch,
)

_PIECES: tuple[tuple[str, QuantPiece], ...] = (("q", "codes"), ("s", "scales"), ("z", "sums"))
_ACT_CODE = {"silu": 0, "gelu_tanh": 1}
_KIND_CODE = {"neox": 0, "pair": 1}


def operands(launch: Launch) -> Operands:
    """The meaning of every parameter of the kernel that `launch` calls."""
    return _BINDERS[type(launch)](launch)


def _read(x: Read, name: str = "x") -> Operands:
    if x.form == "quant":
        return {name + suffix: Quant(x.tensor, piece) for suffix, piece in _PIECES}
    return {name: Values(x.tensor)}


def _write(dst: Dst, suffix: str = "") -> Operands:
    """The output parameters; `suffix` tells the parts of a launch apart."""
    match dst:
        case ToRows(table, at, _):
            return {"table": Cache(table), "slot": _slot(at)}
        case ToScratch(table, _, version):
            raise CallerError(
                f"tensor `{version}` goes to rows of `{table}`: a batch step has no manifest form"
            )
        case ToBuf(tensor, f32, quant):
            out: Operands = {f"y{suffix}": Values(tensor)} if f32 else {}
            if quant:
                out |= {f"y{end}{suffix}": Quant(tensor, piece) for end, piece in _PIECES}
            return out


def _slot(at: RowSel) -> Operand:
    """Rows that end at a param go where the step's `slot` buffer says."""
    if isinstance(at, AtParam):
        return Io("slot")
    raise CallerError(f"a carried table is written at the step's own rows, not at row {at.row}")


def _sizes(**sizes: float | bool) -> Operands:
    return {
        name: Real(value) if isinstance(value, float) else Int(int(value))
        for name, value in sizes.items()
    }


def _embed(launch: Embed) -> Operands:
    return {
        "token": Io("token"),
        "w": Weight(launch.table.const),
        "rows": Count(launch.rows),
        **_write(launch.dst),
        **_sizes(width=launch.table.k),
    }


def _norm(launch: Norm) -> Operands:
    added: Operands = {}
    if launch.add is not None and launch.sum is not None:
        added = {"d": Values(launch.add.tensor), "sum": Values(launch.sum.tensor)}
    return {
        **_read(launch.x),
        **added,
        "w": Vector(launch.w),
        "rows": Count(launch.rows),
        **_write(launch.dst),
        **_sizes(
            width=launch.width,
            unit=launch.unit,
            eps=float(launch.eps),
            plus_one=launch.plus_one,
        ),
    }


def _quantize(launch: Quantize) -> Operands:
    return {
        **_read(launch.x),
        "rows": Count(launch.rows),
        **_write(launch.dst),
        **_sizes(width=launch.width),
    }


def _product(launch: Product) -> Operands:
    bias: Operands = {} if launch.bias is None else {"bias": Vector(launch.bias)}
    return {
        **_read(launch.x),
        "w": Weight(launch.m.const),
        **bias,
        "rows": Count(launch.rows),
        **_write(launch.dst),
        **_sizes(k=launch.m.k, n=launch.m.n),
    }


def _parts(launch: Parts) -> Operands:
    out: Operands = {
        **_read(launch.x),
        "rows": Count(launch.rows),
        **_sizes(k=launch.parts[0].m.k),
    }
    for i, part in enumerate(launch.parts):
        out |= {f"w{i}": Weight(part.m.const), f"n{i}": Int(part.m.n)}
        out |= _write(part.dst, str(i))
        if part.bias is not None:
            out[f"bias{i}"] = Vector(part.bias)
    return out


def _glu(launch: Glu) -> Operands:
    return {
        **_read(launch.x),
        "wg": Weight(launch.gate.const),
        "wu": Weight(launch.up.const),
        "rows": Count(launch.rows),
        **_write(launch.dst),
        **_sizes(k=launch.gate.k, n=launch.gate.n, act=_ACT_CODE[launch.act]),
    }


def _rope(launch: Rope) -> Operands:
    norm = launch.sides[0].norm
    return {
        "position": Io("position"),
        "cos": Rotation(launch.table, "cos"),
        "sin": Rotation(launch.table, "sin"),
        "rows": Count(launch.rows),
        **_sides(launch.sides),
        **_sizes(head_dim=launch.head_dim, rot=launch.rot, kind=_KIND_CODE[launch.kind]),
        **({} if norm is None else _sizes(eps=float(norm.eps), plus_one=norm.plus_one)),
    }


def _sides(sides: Iterable[RopeSide]) -> Operands:
    sides = tuple(sides)
    out: Operands = {}
    for i, side in enumerate(sides):
        suffix = "" if len(sides) == 1 else str(i)
        out |= {f"x{suffix}": Values(side.x.tensor), f"heads{suffix}": Int(side.heads)}
        out |= _write(side.dst, suffix)
        if side.norm is not None:
            out[f"w{suffix}"] = Vector(side.norm.w)
    return out


def _set_rows(launch: SetRows) -> Operands:
    return {
        **_read(launch.x),
        "rows": Count(launch.rows),
        **_write(launch.dst),
        **_sizes(width=launch.width),
    }


def _attention(launch: Attention) -> Operands:
    return {
        "q": Values(launch.q.tensor),
        "k": Cache(launch.k.table),
        "v": Cache(launch.v.table),
        "position": Io("position"),
        "pages": Io("pages"),
        "rows": Count(launch.rows),
        "page": Size("page"),
        "pages_width": Size("pages_width"),
        **_write(launch.dst),
        **_sizes(
            heads=launch.heads,
            groups=launch.groups,
            dk=launch.dk,
            dv=launch.dv,
            stride=0,
            scale=float(launch.scale),
            window=launch.window or 0,
            softcap=float(launch.softcap or 0.0),
        ),
    }


def _take_row(launch: TakeRow) -> Operands:
    """The kernel counts rows from 1: a literal index is one less, the live row count the last."""
    row = Int(launch.at.row + 1) if isinstance(launch.at, Fixed) else Count(launch.rows)
    return {
        **_read(launch.x),
        "row": row,
        **_write(launch.dst),
        **_sizes(width=launch.width),
    }


def _argmax(launch: ArgMax) -> Operands:
    roles: dict[str, Role] = {
        "position": "position",
        "pages": "pages",
        "next": "next",
        "error": "error",
        "token": "chain.token",
        "at": "chain.position",
        "to_slot": "chain.slot",
        "run": "run",
    }
    return {
        "logits": Values(launch.x.tensor),
        **{name: Io(role) for name, role in roles.items()},
        "rows": Size("step_rows"),
        "page": Size("page"),
        "pages_width": Size("pages_width"),
        **_sizes(vocab=launch.vocab),
    }


def _eltwise(launch: Eltwise) -> Operands:
    named: Operands = {"x": Values(launch.a.tensor)}
    if launch.b is not None:
        named = {"a": Values(launch.a.tensor), "b": Values(launch.b.tensor)}
    if launch.row is not None:
        named = {"a": Values(launch.a.tensor), "b": Vector(launch.row)}
    if launch.by is not None:
        named["cap" if launch.fn == "softcap" else "by"] = Real(float(launch.by))
    return {
        **named,
        "count": Elements(launch.rows, launch.width),
        "rows": Count(launch.rows),
        **_write(launch.dst),
        **_sizes(width=launch.width),
    }


_BINDERS: dict[type, Callable[[Any], Operands]] = {
    Embed: _embed,
    Norm: _norm,
    Quantize: _quantize,
    Product: _product,
    Parts: _parts,
    Glu: _glu,
    Rope: _rope,
    SetRows: _set_rows,
    Attention: _attention,
    TakeRow: _take_row,
    ArgMax: _argmax,
    Eltwise: _eltwise,
}
