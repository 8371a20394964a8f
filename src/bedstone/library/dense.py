"""Rows of the catalog without a weight format: norms, rotations, moves, elementwise functions."""

from collections.abc import Iterator
from itertools import product

from bedstone.library.coding import Coding
from bedstone.library.kernel import Extent, Param, Shared
from bedstone.library.params import (
    COLUMNS,
    EACH_ROW,
    TABLE,
    Params,
    Row,
    coded_out,
    floats,
    inputs,
    ints,
    numbered,
    outputs,
    window,
    write_forms,
)
from bedstone.spec.manifest import BytesParam

MOST_PAIRS = 256
"""Pairs a rotation has at most: its frequencies travel by value, in an image of fixed size."""

_CHUNK = 4096

_SAMPLER = Shared(2048 * (8 + 4) + 2048 * 8)
"""Of each tile of a row its weight and its largest logit, and what each digit of a key comes to."""

_LAID_HEAD = Shared(0, (("head_dim", 4),))
_LAID_UNIT = Shared(0, (("unit", 4),))
"""What a table of rounded values gets is made as floats first."""

_NORM = ints("rows width unit") + floats("eps") + ints("plus_one")


def _destinations(y: str) -> tuple[tuple[str, Params, Params], ...]:
    """Where an entry puts its rows, with the sizes that come with it."""
    return (("", outputs(y), ()), ("_rows", TABLE, ()), ("_cols", TABLE, COLUMNS))


def norm_rows(coding: Coding) -> Iterator[Row]:
    """Norms, of a sum or not, with a gate or not; quantize."""
    for out, y in write_forms(coding):
        # where only codes are wanted the float row they are made from lies in scratch
        row = Shared(0, (("width", 4),)) if out == "_q" else None
        families: dict[str, tuple[str, Params]] = {
            "norm": ("norm.c", inputs("x w") + y + _NORM),
            "add_norm": ("norm.c", inputs("x d w") + outputs("sum") + y + _NORM),
            "gated_norm": ("norm_parts.c", inputs("x w z") + y + _NORM + window("z")),
            "add_norm_pre": (
                "norm_parts.c",
                inputs("x d dw w")
                + outputs("sum")
                + y
                + _NORM
                + floats("pre_eps")
                + ints("pre_plus_one"),
            ),
        }
        for family, (source, params) in families.items():
            yield f"{family}{out}", source, params, EACH_ROW, row
    params = inputs("x") + coded_out("y", coding) + ints("rows width")
    yield "quantize", "norm.c", params, EACH_ROW, None
    x, table = inputs("x w"), TABLE + _NORM
    yield "norm_p", "norm_parts.c", x + outputs("y") + _NORM + window("x"), EACH_ROW, None
    yield "norm_cols", "norm_parts.c", x + table + COLUMNS, EACH_ROW, _LAID_UNIT
    yield "norm_p_cols", "norm_parts.c", x + table + window("x") + COLUMNS, EACH_ROW, _LAID_UNIT
    params = inputs("x") + outputs("y") + ints("rows width unit") + floats("eps")
    yield "l2norm", "norm_parts.c", params, EACH_ROW, None


def rope_rows(_: Coding) -> Iterator[Row]:
    """Rotations of one input or two, normed first or not, of whole rows or parts; their tables."""
    where = inputs("position", "i32") + inputs("cos sin")
    for count, norm, part in product((1, 2), ("", "_n"), ("", "_p")):
        x, w, y, heads = (_own(stem, count) for stem in ("x", "w", "y", "heads"))
        *others, last = y.split()
        buffers = inputs(x) + (inputs(w) if norm else ()) + where + outputs(" ".join(others))
        sizes = ints(f"rows {heads} head_dim rot kind")
        sizes += (floats("eps") + ints("plus_one")) if norm else ()
        sizes += (window(*x.split()) + ints("offset")) if part else ()
        family = ("rope", "rope_parts")[count - 1] + norm + part
        for ending, to, columns in _destinations(last):
            laid = _LAID_HEAD if ending else None
            yield f"{family}{ending}", "rope.c", buffers + to + sizes + columns, EACH_ROW, laid
    freqs = (Param("freqs", BytesParam(4 * MOST_PAIRS)),)
    params = freqs + outputs("cos sin") + ints("capacity half") + floats("factor")
    yield "rope_table", "rope_table.c", params, (Extent("capacity", 64),), None


def _own(stem: str, count: int) -> str:
    return stem if count == 1 else numbered(stem, count)


def moved_rows(coding: Coding) -> Iterator[Row]:
    """Rows, parts and columns moved as they are, and the closing arg-max."""
    x, y = inputs("x"), outputs("y")
    slot, table = TABLE[1:], TABLE[:1]
    rows: dict[str, tuple[str, Params]] = {
        "set_rows": ("rows.c", x + slot + table + ints("rows width")),
        "set_cols": ("rows.c", x + slot + table + ints("rows width") + COLUMNS),
        "add_row": ("rows.c", inputs("a b") + y + ints("rows width")),
        "take_part": ("parts.c", x + y + ints("rows width") + window("x")),
        "concat": ("parts.c", inputs("a b") + y + ints("rows units wa wb") + window("a", "b")),
        "quantize_p": ("parts.c", x + coded_out("y", coding) + ints("rows width") + window("x")),
    }
    for entry, (source, params) in rows.items():
        yield entry, source, params, EACH_ROW, None
    yield "take_row", "rows.c", x + ints("row") + y + ints("width"), (), None
    logits = inputs("logits") + inputs("position pages", "i32")
    sizes = ints("rows vocab page pages_width")
    advance = outputs("next error token at to_slot", "i32")
    yield "argmax", "argmax.c", logits + advance + outputs("run", "i32") + sizes, (), None
    yield "argmax_rows", "argmax.c", logits + advance + sizes, (), None
    yield from _sampler_rows(logits, advance)


def _sampler_rows(logits: Params, advance: Params) -> Iterator[Row]:
    """A token drawn from each row, and the close of a step with those."""
    x, where, *_ = logits
    knobs = inputs("temperature") + inputs("top_k", "i32") + inputs("top_p min_p")
    knobs += inputs("seed", "i64")
    changes = inputs("edits edit_token", "i32") + inputs("edit_scale edit_add")
    changes += inputs("restricted allowed report", "i32")
    told = outputs("scores logprob") + outputs("top_token", "i32") + outputs("top_logprob")
    carried = outputs("to_temperature") + outputs("to_top_k", "i32")
    carried += outputs("to_top_p to_min_p") + outputs("to_seed", "i64")
    drawn, sizes = outputs("drawn", "i32"), ints("rows vocab")
    read = (x, where, *knobs)
    params = (*read, *changes, *drawn, *told, *carried, *sizes, *ints("most_edits most"))
    for rows, grid in (("", ()), ("_rows", EACH_ROW)):
        yield f"sample{rows}", "sample.c", params, grid, _SAMPLER
        yield f"sample_carried{rows}", "sample.c", (*read, *drawn, *sizes), grid, _SAMPLER
    closed = inputs("drawn position pages", "i32") + advance
    sizes = ints("rows page pages_width")
    yield "finish", "finish.c", closed + outputs("run", "i32") + sizes, (), None
    yield "finish_rows", "finish.c", closed + sizes, (), None


def elementwise_rows(_: Coding) -> Iterator[Row]:
    """Functions of each value."""
    functions = ("silu", "gelu_tanh", "sigmoid", "softplus")
    forms: tuple[tuple[str, Params, Params], ...] = (
        *((name, inputs("a b"), ()) for name in ("add", "mul")),
        *((name, inputs("x"), ()) for name in (*functions, "copy_rows")),
        ("scale", inputs("x"), floats("by")),
        ("softcap", inputs("x"), floats("cap")),
        ("cast_f16_f32", inputs("x", "f16"), ()),
        ("cast_bf16_f32", inputs("x", "bf16"), ()),
    )
    for name, read, scalars in forms:
        params = read + outputs("y") + ints("count") + scalars
        yield name, "elementwise.c", params, (Extent("count", _CHUNK),), None
    for name in functions:
        params = inputs("x") + outputs("y") + ints("rows width") + window("x")
        yield f"{name}_p", "parts.c", params, EACH_ROW, None
