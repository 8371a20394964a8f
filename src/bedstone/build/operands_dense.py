"""The parameters of the kernels on whole rows, and of those that move values."""

from bedstone.build.bind import ACT_CODE, read, sizes, values, window, write
from bedstone.build.operand import (
    Cache,
    Count,
    Elements,
    Int,
    Io,
    Operands,
    Real,
    Role,
    Size,
    Values,
    Vector,
    Weight,
)
from bedstone.build.sampler import ASKED, MOST_LIKELIEST, SETTINGS
from bedstone.graph.step import Fixed
from bedstone.lane.launch import (
    ArgMax,
    Concat,
    Eltwise,
    Embed,
    Finish,
    GatedNorm,
    Gather,
    Glu,
    L2Norm,
    Norm,
    Parts,
    Product,
    Quantize,
    Sample,
    SetRows,
    TakePart,
    TakeRow,
    ToScratch,
    Window,
)


def embed(launch: Embed) -> Operands:
    """Embedded rows, scaled or not."""
    return {
        "token": Io("token"),
        "w": Weight(launch.table.const),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(width=launch.table.k),
        **({} if launch.by is None else sizes(by=float(launch.by))),
    }


def norm(launch: Norm) -> Operands:
    """A norm, of a sum or not."""
    added: Operands = {}
    if launch.add is not None and launch.sum is not None:
        added = {"d": values(launch.add), "sum": Values(launch.sum.tensor)}
    if launch.pre is not None:
        pre = launch.pre
        added |= {"dw": Vector(pre.w), **sizes(pre_eps=float(pre.eps), pre_plus_one=pre.plus_one)}
    return {
        **read(launch.x),
        **window(launch.x, launch.width),
        **added,
        "w": Vector(launch.w),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **_units(launch),
    }


def _units(launch: Norm | GatedNorm) -> Operands:
    return sizes(
        width=launch.width,
        unit=launch.unit,
        eps=float(launch.eps),
        plus_one=launch.plus_one,
    )


def l2norm(launch: L2Norm) -> Operands:
    """Units brought to unit length."""
    return {
        **read(launch.x),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(width=launch.width, unit=launch.unit, eps=float(launch.eps)),
    }


def gated_norm(launch: GatedNorm) -> Operands:
    """A norm times an activation."""
    return {
        **read(launch.x),
        "w": Vector(launch.w),
        **read(launch.gate, "z"),
        **window(launch.gate, launch.width, "z"),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **_units(launch),
    }


def quantize(launch: Quantize) -> Operands:
    """The quantized form of a tensor."""
    return {
        **read(launch.x),
        **window(launch.x, launch.width),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(width=launch.width),
    }


def product(launch: Product) -> Operands:
    """One product, with what is added to it or the cap on it."""
    rest: Operands = {} if launch.bias is None else {"bias": Vector(launch.bias)}
    if launch.add is not None:
        rest["add"] = values(launch.add)
    if launch.cap is not None:
        rest["cap"] = Real(float(launch.cap))
    return {
        **read(launch.x),
        "w": Weight(launch.m.const),
        **rest,
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(k=launch.m.k, n=launch.m.n),
    }


def parts(launch: Parts) -> Operands:
    """Several products of one input."""
    out: Operands = {
        **read(launch.x),
        "rows": Count(launch.rows),
        **sizes(k=launch.parts[0].m.k),
    }
    for i, part in enumerate(launch.parts):
        out |= {f"w{i}": Weight(part.m.const), f"n{i}": Int(part.m.n)}
        out |= write(part.dst, str(i))
        if part.bias is not None:
            out[f"bias{i}"] = Vector(part.bias)
    return out


def glu(launch: Glu) -> Operands:
    """A gated product."""
    return {
        **read(launch.x),
        "wg": Weight(launch.gate.const),
        "wu": Weight(launch.up.const),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(k=launch.gate.k, n=launch.gate.n, act=ACT_CODE[launch.act]),
    }


def set_rows(launch: SetRows) -> Operands:
    """Rows into a table, or copied."""
    copied: Operands = {}
    if isinstance(launch.dst, ToScratch):
        copied = {"count": Int(launch.rows * launch.width)}
    return {
        **read(launch.x),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(width=launch.width),
        **copied,
    }


def take_row(launch: TakeRow) -> Operands:
    """The kernel counts rows from 1: a literal index is one less, the live row count the last."""
    row = Int(launch.at.row + 1) if isinstance(launch.at, Fixed) else Count(launch.rows)
    return {
        **read(launch.x),
        "row": row,
        **write(launch.dst),
        **sizes(width=launch.width),
    }


def take_part(launch: TakePart) -> Operands:
    """A part of every row."""
    lies = Window(launch.row, launch.pitch, launch.width)
    return {
        "x": Values(launch.x.tensor, start=launch.offset),
        **sizes(x_row=lies.row, x_unit=lies.unit, x_width=lies.width),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(width=launch.units * launch.width),
    }


def concat(launch: Concat) -> Operands:
    """Units side by side; one that is shared is read again for each."""
    left, right = launch.widths
    units = launch.units
    b = window(launch.b, right if launch.shared else right * units, "b")
    if launch.shared:
        b |= sizes(b_unit=0, b_width=right)
    elif launch.b.window is None:
        b |= sizes(b_unit=right, b_width=right)
    a = window(launch.a, left * units, "a")
    if launch.a.window is None:
        a |= sizes(a_unit=left, a_width=left)
    return {
        "a": values(launch.a),
        "b": values(launch.b),
        **a,
        **b,
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(units=units, wa=left, wb=right),
    }


def gather(launch: Gather) -> Operands:
    """Columns of a table's rows, in the order of positions."""
    return {
        "table": Cache(launch.table.table),
        "pages": Io("pages"),
        "rows": Count(launch.rows),
        "page": Size("page"),
        **write(launch.dst),
        **sizes(width=launch.width, pitch=launch.pitch, column=launch.first),
    }


_ADVANCE: dict[str, Role] = {
    "position": "position",
    "pages": "pages",
    "next": "next",
    "error": "error",
    "token": "chain.token",
    "at": "chain.position",
    "to_slot": "chain.slot",
    "run": "run",
}


def argmax(launch: ArgMax) -> Operands:
    """The tokens, and what chains the step to the next."""
    return {"logits": values(launch.x), **_advance(), **sizes(vocab=launch.vocab)}


def finish(launch: Finish) -> Operands:
    """The tokens drawn, and what chains the step to the next."""
    return {"drawn": values(launch.x), **_advance()}


def _advance() -> Operands:
    return {
        **{name: Io(role) for name, role in _ADVANCE.items()},
        "rows": Size("step_rows"),
        "page": Size("page"),
        "pages_width": Size("pages_width"),
    }


def sample(launch: Sample) -> Operands:
    """Settings of each sequence, where a chain finds them, and what a step is asked besides."""
    return {
        "logits": values(launch.x),
        "position": Io("position"),
        **{name: Io(name) for name in (*SETTINGS, *ASKED)},
        **{f"to_{name}": Io(kept) for name, kept in SETTINGS.items()},
        "drawn": Values(launch.dst.tensor),
        "rows": Size("step_rows"),
        "most_edits": Size("edits"),
        **sizes(vocab=launch.vocab, most=MOST_LIKELIEST),
    }


def eltwise(launch: Eltwise) -> Operands:
    """A function of one tensor or two."""
    named: Operands = {"x": values(launch.a)}
    if launch.b is not None:
        named = {"a": values(launch.a), "b": values(launch.b)}
    if launch.row is not None:
        named = {"a": values(launch.a), "b": Vector(launch.row)}
    if launch.by is not None:
        named["cap" if launch.fn == "softcap" else "by"] = Real(float(launch.by))
    return {
        **named,
        **window(launch.a, launch.width),
        "count": Elements(launch.rows, launch.width),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(width=launch.width),
    }
