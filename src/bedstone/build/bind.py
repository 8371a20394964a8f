"""What launches of every family hand their kernels alike: tensors read and written, and sizes."""

from bedstone.build.operand import (
    Cache,
    Int,
    Io,
    Operand,
    Operands,
    Quant,
    QuantPiece,
    Real,
    Values,
)
from bedstone.errors import CallerError
from bedstone.graph.step import AtParam, RowSel
from bedstone.lane.launch import Dst, Read, ToBuf, ToEach, ToRows, ToScratch, Window

_PIECES: tuple[tuple[str, QuantPiece], ...] = (("q", "codes"), ("s", "scales"), ("z", "sums"))

ACT_CODE = {"silu": 0, "gelu_tanh": 1}


def read(x: Read, name: str = "x") -> Operands:
    """The input parameters, in the form that is read."""
    row = x.row or 0
    if x.form == "quant":
        return {name + suffix: Quant(x.tensor, piece, row) for suffix, piece in _PIECES}
    return {name: Values(x.tensor, row)}


def values(x: Read) -> Values:
    """The address of an input that is read as values."""
    return Values(x.tensor, x.row or 0)


def window(x: Read, width: int, name: str = "x") -> Operands:
    """How an input lies in memory that a kernel can follow: `width` values a row, if in order."""
    lies = x.window or Window(width, width, width)
    return sizes(
        **{f"{name}_row": lies.row, f"{name}_unit": lies.unit, f"{name}_width": lies.width}
    )


def write(dst: Dst, suffix: str = "", name: str = "y") -> Operands:
    """The output parameters; `suffix` tells the parts of a launch apart."""
    match dst:
        case ToRows(table, at, _, columns):
            place = {"table": Cache(table), "slot": _slot(at)}
            if columns is None:
                return place
            return {**place, **sizes(pitch=columns.pitch, column=columns.first)}
        case ToEach(rows):
            return write(rows[0], suffix, name)
        case ToScratch(tensor, row, _, f32, quant):
            return _forms(f"{name}{{}}{suffix}", tensor, row, (f32, quant))
        case ToBuf(tensor, f32, quant):
            return _forms(f"{name}{{}}{suffix}", tensor, 0, (f32, quant))


def _forms(name: str, tensor: str, row: int, forms: tuple[bool, bool]) -> Operands:
    f32, quant = forms
    out: Operands = {name.format(""): Values(tensor, row)} if f32 else {}
    if quant:
        out |= {name.format(end): Quant(tensor, piece, row) for end, piece in _PIECES}
    return out


def _slot(at: RowSel) -> Operand:
    """Rows that end at a param go where the step's `slot` buffer says."""
    if isinstance(at, AtParam):
        return Io("slot")
    raise CallerError(f"a carried table is written at the step's own rows, not at row {at.row}")


def sizes(**named: float | bool) -> Operands:
    """Literal parameters."""
    return {
        name: Real(value) if isinstance(value, float) else Int(int(value))
        for name, value in named.items()
    }
