"""Rows of the catalog: mixtures of experts."""

from collections.abc import Iterator
from itertools import product

from bedstone.library.coding import Coding
from bedstone.library.kernel import Extent, Kernel, Shared
from bedstone.library.params import (
    EACH_ROW,
    SCRATCH,
    TILE,
    Params,
    Row,
    coded,
    floats,
    inputs,
    ints,
    kernel,
    outputs,
    read_forms,
    write_forms,
)
from bedstone.spec.dtype import Format

ROUTED_ROWS = 8
"""Rows one block of a router owns."""

_CHOICE = ints("experts chosen groups group_k group_best")
_BALLOT = Shared(0, (("experts", 12),))
_OUTPUTS = (Extent("n", TILE),)


def router_rows(_: Coding) -> Iterator[Row]:
    """What a router makes of its logits, and the sum of what the chosen experts make."""
    params = inputs("x") + outputs("y") + ints("rows experts fn")
    yield "score", "mixture.c", params, EACH_ROW, None
    for biased, bias in (("", ()), ("_b", inputs("bias"))):
        params = inputs("x") + bias + outputs("ids", "i32") + ints("rows") + _CHOICE
        yield f"topk{biased}", "mixture.c", params, EACH_ROW, _BALLOT
    sizes = ints("rows experts chosen normalise") + floats("factor")
    params = inputs("x") + inputs("ids", "i32") + outputs("y") + sizes
    yield "renorm", "mixture.c", params, EACH_ROW, None
    params = inputs("x w") + outputs("y") + ints("rows chosen n")
    yield "xsum", "mixture.c", params, EACH_ROW, None


def expert_kernels(fmt: Format, coding: Coding) -> Iterator[Kernel]:
    """The products of a mixture whose matrices have one format."""
    for row in (*_routes(fmt, coding), *_products(fmt, coding), *_gated(fmt, coding)):
        yield kernel(row, fmt)


def _routes(fmt: Format, coding: Coding) -> Iterator[Row]:
    grid = (Extent("rows", ROUTED_ROWS),)
    sizes = ints("rows k") + _CHOICE + ints("fn normalise") + floats("factor")
    for (form, x), biased in product(read_forms(fmt, coding), (False, True)):
        read = x + inputs("w", fmt.dtype) + (inputs("bias") if biased else ())
        made = outputs("ids", "i32") + outputs("weights")
        entry = f"route{form}_{fmt.name}{'_b' if biased else ''}"
        yield entry, "experts.c", read + made + sizes, grid, SCRATCH


def _products(fmt: Format, coding: Coding) -> Iterator[Row]:
    ids, w = inputs("ids", "i32"), inputs("w", fmt.dtype)
    for form, x in read_forms(fmt, coding):
        params = x + ids + w + outputs("y") + ints("rows chosen units k n")
        yield f"xlinear{form}_{fmt.name}", "experts.c", params, _OUTPUTS, SCRATCH
        z = coded("z", coding) if form == "_q" else inputs("zx")
        for ending, shared, size in _shared(z + inputs("sw", fmt.dtype), inputs("share")):
            read = x + ids + inputs("weights") + w + shared
            params = read + outputs("y") + ints("rows chosen k n") + size
            yield f"xdown{ending}{form}_{fmt.name}", "experts.c", params, _OUTPUTS, SCRATCH


def _shared(network: Params, share: Params) -> tuple[tuple[str, Params, Params], ...]:
    """Without a shared network, with one, and with one behind a gate of its own."""
    size = ints("sn")
    return ("", (), ()), ("_s", network, size), ("_sg", network + share, size)


def _gated(fmt: Format, coding: Coding) -> Iterator[Row]:
    sizes = ints("rows chosen k n act")
    own, gate = inputs("sg su", fmt.dtype), inputs("gx gw")
    for (form, x), (out, y), (_, z) in (
        (read, made, other)
        for read in read_forms(fmt, coding)
        for made, other in zip(write_forms(coding), write_forms(coding, "z"), strict=True)
    ):
        for ending, shared, size in _shared(own, gate):
            read = x + inputs("ids", "i32") + inputs("wg wu", fmt.dtype) + shared
            made = y + (z if ending else ()) + (outputs("share") if ending == "_sg" else ())
            entry = f"xglu{ending}{form}_{fmt.name}{out}"
            yield entry, "experts.c", read + made + sizes + size, _OUTPUTS, SCRATCH
