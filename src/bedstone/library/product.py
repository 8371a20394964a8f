"""Rows of the catalog: matrix products, of each weight format."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from types import MappingProxyType

from bedstone.library.coding import INT8, Coding
from bedstone.library.kernel import Extent, Kernel, Shared
from bedstone.library.params import (
    EACH_ROW,
    SCRATCH,
    TABLE,
    TILE,
    Params,
    Row,
    floats,
    inputs,
    ints,
    kernel,
    numbered,
    outputs,
    read_forms,
    window,
    write_forms,
)
from bedstone.spec.dtype import Format

HEAD_COLUMNS = 256
"""Outputs of one head's transposed matrix a block owns."""

PANELS = "panels_"
"""How entries begin that read matrices in panels."""

PANEL_ROWS = 16
"""Rows of a matrix that lie side by side in a panel."""

_FEW, _MANY = 2, 64
"""Rows that weights are read once for as they are held, and rows that hide what laying costs."""

_OUTPUTS = frozenset({"n", "n0", "n1", "n2", "n3"})

_TRANSPOSED = Shared(64 * 1024)
"""The sums of 64 rows."""


def product_kernels(fmt: Format, coding: Coding) -> Iterator[Kernel]:
    """The products of one format: looked up, of whole rows, gated, and of each head its own."""
    for row in (*_embeds(fmt), *_linears(fmt, coding), *_heads(fmt, coding)):
        yield kernel(row, fmt)


def panel_kernels(fmt: Format, coding: Coding) -> Iterator[Kernel]:
    """The products by codes that read matrices in panels, and the kernel that lays one so.

    None where a format's blocks share headers, or have none.
    """
    if fmt.block != INT8.block:
        return
    layer = f"in_panels_{fmt.name}"
    params = inputs("x", "u8") + outputs("y", "u8") + ints("rows width")
    yield kernel((layer, "panels.c", params, (Extent("rows", PANEL_ROWS),), None), fmt)
    for row in _linears(fmt, coding):
        plain = kernel(row, fmt)
        if "xq" in {param.name for param in plain.params}:
            yield replace(
                plain,
                entry=f"{PANELS}{plain.entry}",
                module=f"{plain.module}-panels",
                defines=MappingProxyType({**plain.defines, "BS_PANELS": "1"}),
                layer=layer,
            )


def suits_panels(sizes: Mapping[str, int]) -> bool:
    """Whether rows are so few that laying panels for them weighs, and panels are whole."""
    outputs = [size for name, size in sizes.items() if name in _OUTPUTS]
    whole = outputs and all(size % PANEL_ROWS == 0 for size in outputs)
    return bool(whole) and _FEW < sizes.get("rows", 0) <= _MANY


def _embeds(fmt: Format) -> Iterator[Row]:
    read = inputs("token", "i32") + inputs("w", fmt.dtype) + outputs("y") + ints("rows width")
    yield f"embed_{fmt.name}", "embed.c", read, EACH_ROW, None
    yield f"embed_scaled_{fmt.name}", "embed.c", read + floats("by"), EACH_ROW, None


def _linears(fmt: Format, coding: Coding) -> Iterator[Row]:
    for form, x in read_forms(fmt, coding):
        for bias, rows in product(("", "_b"), ("", "_rows")):
            for count in (1, 2, 3):
                yield _linear(fmt, (form, x), count, bias, rows)
        yield _linear(fmt, (form, x), 4, "", "")
        yield from _finished(fmt, (form, x))
        for out, y in write_forms(coding):
            params = x + inputs("wg wu", fmt.dtype) + y + ints("rows k n act")
            yield f"glu{form}_{fmt.name}{out}", "linear.c", params, (Extent("n", TILE),), SCRATCH


def _linear(fmt: Format, read: tuple[str, Params], count: int, bias: str, rows: str) -> Row:
    """The product of `count` matrices with one input; blocks are dealt by the first's outputs."""
    form, x = read
    single = count == 1
    weights, biases, outs, sizes = (
        stem if single else numbered(stem, count) for stem in ("w", "bias", "y", "n")
    )
    buffers = outs.split()[:-1] if rows else outs.split()
    params = (
        *x,
        *inputs(weights, fmt.dtype),
        *(inputs(biases) if bias else ()),
        *outputs(" ".join(buffers)),
        *(TABLE if rows else ()),
        *ints(f"rows k {sizes}"),
    )
    family = "linear" if single else f"parts{count}"
    extents = (Extent("n" if single else "n0", TILE),)
    return f"{family}{form}_{fmt.name}{bias}{rows}", "linear.c", params, extents, SCRATCH


def _finished(fmt: Format, read: tuple[str, Params]) -> Iterator[Row]:
    """A product with something added to it, or within a cap."""
    form, x = read
    w, sizes, grid = inputs("w", fmt.dtype), ints("rows k n"), (Extent("n", TILE),)
    for bias, b in (("", ()), ("_b", inputs("bias"))):
        params = x + w + b + inputs("add") + outputs("y") + sizes
        yield f"linear{form}_{fmt.name}{bias}_add", "linear.c", params, grid, SCRATCH
    params = x + w + outputs("y") + sizes + floats("cap")
    yield f"linear{form}_{fmt.name}_cap", "linear.c", params, grid, SCRATCH


def _heads(fmt: Format, coding: Coding) -> Iterator[Row]:
    w, sizes = inputs("w", fmt.dtype), ints("rows heads k n") + window("x")
    grid = (Extent("heads"), Extent("n", TILE))
    for (form, x), (out, y) in product(read_forms(fmt, coding), write_forms(coding)):
        yield f"hlinear{form}_{fmt.name}{out}", "hlinear.c", x + w + y + sizes, grid, SCRATCH
    params = inputs("x") + w + outputs("y") + sizes
    grid = (Extent("heads"), Extent("n", HEAD_COLUMNS))
    yield f"hlinear_t_{fmt.name}", "hlinear.c", params, grid, _TRANSPOSED
