"""The kernel entry a launch calls: the one place that knows how the library names its kernels."""

from collections.abc import Callable
from typing import Any

from bedstone.lane.launch import (
    ArgMax,
    Attending,
    Attention,
    Concat,
    Conv,
    Decay,
    DecayGates,
    Delta,
    Dst,
    Eltwise,
    Embed,
    ExpertGlu,
    ExpertProduct,
    ExpertSum,
    Finish,
    FlatAttention,
    GatedNorm,
    Gather,
    GemmPart,
    Glu,
    HeadProduct,
    L2Norm,
    Launch,
    Matrix,
    Norm,
    Parts,
    Product,
    Quantize,
    Read,
    Renorm,
    Rope,
    Route,
    Sample,
    Score,
    Sequences,
    SetRows,
    Stack,
    TakePart,
    TakeRow,
    ToEach,
    TopK,
    ToRows,
    WeightedSum,
)
from bedstone.lane.touch import reads_of


def entry(launch: Launch) -> str:
    """The kernel entry of `launch`, whether or not a library has it."""
    if isinstance(launch, Sequences):
        return entry(launch.whole)
    return _NAMERS[type(launch)](launch)


def followed(launch: Launch) -> tuple[Read, ...]:
    """The reads whose kernel can follow a part of a wider tensor."""
    match launch:
        case Sequences(whole=whole):
            return followed(whole)
        case Norm(add=None, x=x) | Quantize(x=x) | HeadProduct(x=x):
            reads: tuple[Read | None, ...] = (x,)
        case Eltwise(fn="silu" | "gelu_tanh" | "sigmoid" | "softplus", a=a) | Decay(a=a):
            reads = (a,)
        case Rope(sides=sides):
            reads = tuple(side.x for side in sides)
        case Conv(parts=parts):
            reads = tuple(part.x for part in parts)
        case Concat(a=a, b=b) | FlatAttention(k=a, v=b) | Delta(gates=DecayGates(a=a, b=b)):
            reads = (a, b)
        case Attention(gate=gate) | GatedNorm(gate=gate):
            reads = (gate,)
        case _:
            reads = ()
    return tuple(read for read in reads if read is not None)


def _part(launch: Launch) -> str:
    """The suffix that says that a kernel is given windows."""
    return "_p" if any(read.window is not None for read in reads_of(launch)) else ""


def _form(dst: Dst) -> str:
    """The suffix that says which forms of its result a kernel writes."""
    if isinstance(dst, ToEach):
        return "_rows"
    if isinstance(dst, ToRows):
        return "_rows" if dst.columns is None else "_cols"
    return _FORMS[dst.f32, dst.quant]


def _product(stem: str, x: Read, m: Matrix | Stack) -> str:
    form = "_q" if x.form == "quant" else "_r" if m.rounded else ""
    return f"{stem}{form}_{m.format}"


def _embed(launch: Embed) -> str:
    stem = "embed" if launch.by is None else "embed_scaled"
    return f"{stem}_{launch.table.format}" + _form(launch.dst)


def _norm(launch: Norm) -> str:
    if launch.sum is None:
        return "norm" + _part(launch) + _form(launch.dst)
    stem = "add_norm" if launch.pre is None else "add_norm_pre"
    return stem + _form(launch.sum) + _form(launch.dst)


def _linear(launch: Product) -> str:
    bias = "" if launch.bias is None else "_b"
    finish = "_add" if launch.add is not None else "" if launch.cap is None else "_cap"
    return _product("linear", launch.x, launch.m) + bias + finish + _form(launch.dst)


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
    return _product("glu", launch.x, launch.gate) + _mixed(launch) + _form(launch.dst)


def _mixed(launch: Glu | ExpertGlu) -> str:
    return "" if launch.up.format == launch.gate.format else f"_{launch.up.format}"


def _rope(launch: Rope) -> str:
    stem = "rope" if len(launch.sides) == 1 else "rope_parts"
    normed = "" if launch.sides[0].norm is None else "_n"
    part = "_p" if launch.offset else _part(launch)
    return stem + normed + part + "".join(_form(side.dst) for side in launch.sides)


def _set_rows(launch: SetRows) -> str:
    if isinstance(launch.dst, ToRows):
        return "set" + _form(launch.dst)
    return "copy_rows" + _form(launch.dst)


def _attention(launch: Attention) -> str:
    gate = "" if launch.gate is None else "_gate"
    inside = "" if launch.v is not None else "_in"
    split = "" if launch.split is None else "_split"
    return "attention" + inside + split + gate + _rounds(launch) + _form(launch.dst)


def _flat_attention(launch: FlatAttention) -> str:
    split = "" if launch.tail is None else "_split"
    return "attention_flat" + split + _rounds(launch) + _form(launch.dst)


def _rounds(launch: Attending) -> str:
    return "_r" if launch.rounded else ""


def _head_product(launch: HeadProduct) -> str:
    if launch.transposed:
        return f"hlinear_t_{launch.m.format}" + _form(launch.dst)
    return _product("hlinear", launch.x, launch.m) + _form(launch.dst)


def _route(launch: Route) -> str:
    bias = "" if launch.routing.bias is None else "_b"
    return _product("route", launch.x, launch.m) + bias


def _expert_glu(launch: ExpertGlu) -> str:
    shared, form = launch.shared, _form(launch.dst)
    if shared is None:
        return _product("xglu", launch.x, launch.gate) + _mixed(launch) + form
    stem = "xglu_s" if shared.share is None else "xglu_sg"
    unlike = "" if _form(shared.dst) == form else f"{_form(shared.dst)}_apart"
    return _product(stem, launch.x, launch.gate) + _mixed(launch) + form + unlike


def _expert_sum(launch: ExpertSum) -> str:
    shared = launch.shared
    stem = "xdown" if shared is None else "xdown_s" if shared.share is None else "xdown_sg"
    return _product(stem, launch.x, launch.m) + _form(launch.dst)


def _conv(launch: Conv) -> str:
    return "conv" if len(launch.parts) == 1 else f"conv_parts{len(launch.parts)}"


def _delta(launch: Delta) -> str:
    stem = "delta_gates" if isinstance(launch.gates, DecayGates) else "delta"
    return stem + _form(launch.dst)


_FORMS = {(True, False): "", (False, True): "_q", (True, True): "_fq", (False, False): "_none"}

_NAMERS: dict[type, Callable[[Any], str]] = {
    Embed: _embed,
    Norm: _norm,
    L2Norm: lambda launch: "l2norm" + _form(launch.dst),
    GatedNorm: lambda launch: "gated_norm" + _form(launch.dst),
    Quantize: lambda launch: "quantize" + _part(launch),
    Product: _linear,
    Parts: _parts,
    Glu: _glu,
    Eltwise: lambda launch: launch.fn + _part(launch) + _form(launch.dst),
    ArgMax: lambda launch: ("argmax" if launch.rows == 1 else "argmax_rows") + _form(launch.dst),
    Sample: lambda launch: ("sample" if launch.rows == 1 else "sample_rows") + _form(launch.dst),
    Finish: lambda launch: ("finish" if launch.rows == 1 else "finish_rows") + _form(launch.dst),
    TakeRow: lambda launch: "take_row" + _form(launch.dst),
    TakePart: lambda launch: "take_part" + _form(launch.dst),
    SetRows: _set_rows,
    Concat: lambda launch: "concat" + _form(launch.dst),
    Gather: lambda launch: "gather" + _form(launch.dst),
    Rope: _rope,
    Attention: _attention,
    FlatAttention: _flat_attention,
    HeadProduct: _head_product,
    Score: lambda launch: "score" + _form(launch.dst),
    TopK: lambda launch: "topk" if launch.routing.bias is None else "topk_b",
    Renorm: lambda launch: "renorm" + _form(launch.dst),
    Route: _route,
    ExpertProduct: lambda launch: _product("xlinear", launch.x, launch.m) + _form(launch.dst),
    ExpertGlu: _expert_glu,
    ExpertSum: _expert_sum,
    WeightedSum: lambda launch: "xsum" + _form(launch.dst),
    Decay: lambda launch: "decay" + _form(launch.dst),
    Conv: _conv,
    Delta: _delta,
}
