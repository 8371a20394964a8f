"""The kernel entry a launch calls: the one place that knows how the library names its kernels."""

from collections.abc import Callable
from typing import Any

from bedstone.lane.launch import (
    ArgMax,
    Attention,
    Dst,
    Eltwise,
    Embed,
    GemmPart,
    Glu,
    Launch,
    Matrix,
    Norm,
    Parts,
    Product,
    Quantize,
    Read,
    Rope,
    SetRows,
    TakeRow,
    ToRows,
)


def entry(launch: Launch) -> str:
    """The kernel entry of `launch`, whether or not a library has it."""
    return _NAMERS[type(launch)](launch)


def _form(dst: Dst) -> str:
    """The suffix that says which forms of its result a kernel writes."""
    if isinstance(dst, ToRows):
        return "_rows"
    return _FORMS[dst.f32, dst.quant]


def _product(stem: str, x: Read, m: Matrix) -> str:
    return f"{stem}_q_{m.format}" if x.form == "quant" else f"{stem}_{m.format}"


def _norm(launch: Norm) -> str:
    stem = "norm" if launch.sum is None else "add_norm" + _form(launch.sum)
    return stem + _form(launch.dst)


def _linear(launch: Product) -> str:
    bias = "" if launch.bias is None else "_b"
    return _product("linear", launch.x, launch.m) + bias + _form(launch.dst)


def _parts(launch: Parts) -> str:
    """Parts of unlike formats, or with and without a bias, are named part by part."""
    stem, first = f"parts{len(launch.parts)}", launch.parts[0]
    forms = "".join(_form(part.dst) for part in launch.parts)
    if any(_kind(part) != _kind(first) for part in launch.parts):
        return "_".join((stem, *map(_kind, launch.parts))) + forms
    bias = "" if first.bias is None else "_b"
    return _product(stem, launch.x, first.m) + bias + forms


def _kind(part: GemmPart) -> str:
    return part.m.format if part.bias is None else f"{part.m.format}_b"


def _glu(launch: Glu) -> str:
    stem = _product("glu", launch.x, launch.gate)
    mixed = "" if launch.up.format == launch.gate.format else f"_{launch.up.format}"
    return stem + mixed + _form(launch.dst)


def _rope(launch: Rope) -> str:
    stem = "rope" if len(launch.sides) == 1 else "rope_parts"
    normed = "" if launch.sides[0].norm is None else "_n"
    return stem + normed + "".join(_form(side.dst) for side in launch.sides)


def _set_rows(launch: SetRows) -> str:
    if isinstance(launch.dst, ToRows):
        return "set_rows"
    return "copy_rows" + _form(launch.dst)


_FORMS = {(True, False): "", (False, True): "_q", (True, True): "_fq", (False, False): "_none"}

_NAMERS: dict[type, Callable[[Any], str]] = {
    Embed: lambda launch: f"embed_{launch.table.format}" + _form(launch.dst),
    Norm: _norm,
    Quantize: lambda _: "quantize",
    Product: _linear,
    Parts: _parts,
    Glu: _glu,
    Rope: _rope,
    SetRows: _set_rows,
    Attention: lambda launch: "attention" + _form(launch.dst),
    TakeRow: lambda launch: "take_row" + _form(launch.dst),
    ArgMax: lambda launch: "argmax" + _form(launch.dst),
    Eltwise: lambda launch: launch.fn + _form(launch.dst),
}
