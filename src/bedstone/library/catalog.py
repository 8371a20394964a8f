"""The CPU kernels: every entry with its parameters, grid, scratch and module.

A family is a few rows; its entries are the product of its formats, activation forms and output
forms. The C sources lie under `bedstone/kernels/`; the contract in prose is `docs/kernels.md`.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product
from types import MappingProxyType

from bedstone.library.kernel import Extent, Kernel, KernelSet, Param, Shared
from bedstone.spec.dtype import FORMATS, DType, Format
from bedstone.spec.manifest import (
    BufferParam,
    BytesParam,
    Direction,
    ParamType,
    ScalarParam,
    StateParam,
)

TILE = 32
"""Outputs one block of a matrix product owns; also the values of one quantized block."""

ROW_TILE = 4
"""Rows one block of an attention owns."""

MOST_PAIRS = 256
"""Pairs a rotation has at most: its frequencies travel by value, in an image of fixed size."""

_SCRATCH = Shared(226 * 1024)
"""What a tile of weights or of keys is laid into: just under the manifest's limit a launch."""

_CHUNK = 4096
_ONE = Extent()

Params = tuple[Param, ...]


def _buffer(direction: Direction, dtype: DType, *names: str) -> Params:
    return tuple(Param(name, BufferParam(direction, dtype)) for name in names)


def _scalar(kind: ParamType, *names: str) -> Params:
    return tuple(Param(name, kind) for name in names)


def _i32(names: str) -> Params:
    return _scalar(ScalarParam("i32"), *names.split())


def _f32(names: str) -> Params:
    return _scalar(ScalarParam("f32"), *names.split())


def _in(names: str, dtype: DType = "f32") -> Params:
    return _buffer("in", dtype, *names.split())


def _out(names: str, dtype: DType = "f32") -> Params:
    return _buffer("out", dtype, *names.split())


_QUANTIZED_OUT = _out("yq", "i8") + _out("ys") + _out("yz", "i32")
_TABLE = (Param("table", StateParam("inout")), *_in("slot", "i32"))

_X: tuple[tuple[str, Params], ...] = (
    ("", _in("x")),
    ("_q", _in("xq", "i8") + _in("xs") + _in("xz", "i32")),
)
"""Activation forms: float32 rows, or int8 codes with a scale and a sum a block."""

_Y: tuple[tuple[str, Params], ...] = (
    ("", _out("y")),
    ("_q", _QUANTIZED_OUT),
    ("_fq", _out("y") + _QUANTIZED_OUT),
)
"""Output forms of an entry that can quantize what it makes."""

_DESTINATIONS: tuple[tuple[str, Params], ...] = (("", _out("y")), ("_rows", _TABLE))
"""Where an entry puts its rows: a buffer, or rows of a table."""


def _names(stem: str, count: int) -> str:
    return " ".join(f"{stem}{i}" for i in range(count))


# --- matrix products -------------------------------------------------------------------------


def _products(fmt: Format) -> Iterator[tuple[str, Params, Extent]]:
    for form, x in _X[: 2 if fmt.quantized else 1]:
        for bias, rows in product(("", "_b"), ("", "_rows")):
            for count in (1, 2, 3):
                yield _linear(fmt, (form, x), count, bias, rows)
        for out, y in _Y:
            params = (*x, *_in("wg wu", fmt.dtype), *y, *_i32("rows k n act"))
            yield f"glu{form}_{fmt.name}{out}", params, Extent("n", TILE)


def _linear(
    fmt: Format, activation: tuple[str, Params], count: int, bias: str, rows: str
) -> tuple[str, Params, Extent]:
    """The product of `count` matrices with one input; blocks are dealt by the first's outputs."""
    form, x = activation
    single = count == 1
    weights, biases, outs, sizes = (
        stem if single else _names(stem, count) for stem in ("w", "bias", "y", "n")
    )
    buffers = outs.split()[:-1] if rows else outs.split()
    params = (
        *x,
        *_in(weights, fmt.dtype),
        *(_in(biases) if bias else ()),
        *_out(" ".join(buffers)),
        *(_TABLE if rows else ()),
        *_i32(f"rows k {sizes}"),
    )
    family = "linear" if single else f"parts{count}"
    return f"{family}{form}_{fmt.name}{bias}{rows}", params, Extent("n" if single else "n0", TILE)


def _format_kernels(fmt: Format) -> Iterator[Kernel]:
    defines = MappingProxyType({"BS_FORMAT": f"BS_{fmt.name.upper()}"})
    embed = (*_in("token", "i32"), *_in("w", fmt.dtype), *_out("y"), *_i32("rows width"))
    grid = (Extent("rows"), _ONE, _ONE)
    yield Kernel(f"embed_{fmt.name}", f"embed-{fmt.name}", "embed.c", defines, embed, grid)
    for entry, params, extent in _products(fmt):
        module = f"linear-{fmt.name}"
        yield Kernel(entry, module, "linear.c", defines, params, (extent, _ONE, _ONE), _SCRATCH)


# --- everything else -------------------------------------------------------------------------

Row = tuple[str, str, Params, tuple[Extent, ...], Shared | None]
"""Entry, source, parameters, grid (missing extents are 1), scratch."""

_NORM_SCALARS = _i32("rows width unit") + _f32("eps") + _i32("plus_one")
_EACH_ROW = (Extent("rows"),)
_EACH_CHUNK = (Extent("count", _CHUNK),)


def _norm_rows() -> Iterator[Row]:
    for out, y in _Y:
        # where only codes are wanted the float row they are made from lies in scratch
        row = Shared(0, (("width", 4),)) if out == "_q" else None
        yield f"norm{out}", "norm.c", _in("x w") + y + _NORM_SCALARS, _EACH_ROW, row
        params = _in("x d w") + _out("sum") + y + _NORM_SCALARS
        yield f"add_norm{out}", "norm.c", params, _EACH_ROW, row
    params = _in("x") + _QUANTIZED_OUT + _i32("rows width")
    yield "quantize", "norm.c", params, _EACH_ROW, None


def _rope_rows() -> Iterator[Row]:
    where = _in("position", "i32") + _in("cos sin")
    for norm, (rows, y) in product(("", "_n"), _DESTINATIONS):
        scalars = (_f32("eps") + _i32("plus_one")) if norm else ()
        sizes = _i32("rows heads head_dim rot kind")
        params = _in("x") + (_in("w") if norm else ()) + where + y + sizes + scalars
        yield f"rope{norm}{rows}", "rope.c", params, _EACH_ROW, None
        second = _TABLE if rows else _out("y1")
        sizes = _i32("rows heads0 heads1 head_dim rot kind")
        weights = _in("w0 w1") if norm else ()
        params = _in("x0 x1") + weights + where + _out("y0") + second + sizes + scalars
        yield f"rope_parts{norm}{rows}", "rope.c", params, _EACH_ROW, None
    freqs = (Param("freqs", BytesParam(4 * MOST_PAIRS)),)
    params = freqs + _out("cos sin") + _i32("capacity half") + _f32("factor")
    yield "rope_table", "rope_table.c", params, (Extent("capacity", 64),), None


def _attention_rows() -> Iterator[Row]:
    state = StateParam("in")
    inputs = (*_in("q"), Param("k", state), Param("v", state), *_in("position pages", "i32"))
    sizes = _i32("rows heads groups dk dv page pages_width stride")
    scalars = _f32("scale") + _i32("window") + _f32("softcap")
    grid = (Extent("rows", ROW_TILE), Extent("groups"))
    for out, y in _Y:
        yield f"attention{out}", "attention.c", inputs + y + sizes + scalars, grid, _SCRATCH


def _row_rows() -> Iterator[Row]:
    set_rows = _in("x") + _in("slot", "i32") + (_TABLE[0],) + _i32("rows width")
    yield "set_rows", "rows.c", set_rows, _EACH_ROW, None
    take_row = _in("x") + _i32("row") + _out("y") + _i32("width")
    yield "take_row", "rows.c", take_row, (), None
    add_row = _in("a b") + _out("y") + _i32("rows width")
    yield "add_row", "rows.c", add_row, _EACH_ROW, None
    advance = _out("next error token at to_slot run", "i32")
    inputs = _in("logits") + _in("position pages", "i32")
    yield "argmax", "argmax.c", inputs + advance + _i32("rows vocab page pages_width"), (), None


def _elementwise_rows() -> Iterator[Row]:
    forms: tuple[tuple[str, Params, Params], ...] = (
        *((name, _in("a b"), ()) for name in ("add", "mul")),
        *((name, _in("x"), ()) for name in ("silu", "gelu_tanh", "sigmoid")),
        ("scale", _in("x"), _f32("by")),
        ("softcap", _in("x"), _f32("cap")),
        ("cast_f16_f32", _in("x", "f16"), ()),
        ("cast_bf16_f32", _in("x", "bf16"), ()),
    )
    for name, inputs, scalars in forms:
        params = inputs + _out("y") + _i32("count") + scalars
        yield name, "elementwise.c", params, _EACH_CHUNK, None


def _kernel(row: Row) -> Kernel:
    entry, source, params, extents, shared = row
    x, y, z = (*extents, _ONE, _ONE, _ONE)[:3]
    module = source.removesuffix(".c").replace("_", "-")
    return Kernel(entry, module, source, MappingProxyType({}), params, (x, y, z), shared)


def _every_kernel() -> Iterator[Kernel]:
    for fmt in FORMATS.values():
        yield from _format_kernels(fmt)
    for family in (_norm_rows, _rope_rows, _attention_rows, _row_rows, _elementwise_rows):
        yield from map(_kernel, family())


@cache
def cpu_kernels() -> KernelSet:
    """The kernels of every CPU hardware set: the sets differ in code, never in contract."""
    return KernelSet("cpu", MappingProxyType({k.entry: k for k in _every_kernel()}))


__all__ = ["Extent", "Kernel", "KernelSet", "Param", "Shared", "cpu_kernels"]
