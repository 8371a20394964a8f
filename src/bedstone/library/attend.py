"""Rows of the catalog: attention over a paged table, or over keys and values made of its rows."""

from collections.abc import Iterator

from bedstone.library.coding import Coding
from bedstone.library.kernel import Extent
from bedstone.library.params import (
    SCRATCH,
    Params,
    Row,
    floats,
    inputs,
    ints,
    states,
    window,
    write_forms,
)

ROW_TILE = 4
"""Rows one block of an attention owns."""

FLAT_ROWS = 16
"""The same where keys and values lie in buffers: there each head has its own."""

GATHERED_ROWS = 16
"""Rows one block copies out of a table."""

_SIZES = ints("rows heads groups dk dv")
_PAGED = ints("page pages_width")
_SCORES = floats("scale") + ints("window") + floats("softcap")
_FLAT = ints("k_row k_unit v_row v_unit")


def attention_rows(coding: Coding) -> Iterator[Row]:
    """Attention wherever keys and values lie, in every form of its output."""
    where, position = inputs("position pages", "i32"), inputs("position", "i32")
    paged = _SIZES + _PAGED + ints("stride") + _SCORES
    flat = inputs("q k v")
    families: dict[str, tuple[Params, Params]] = {
        "": (inputs("q") + states("in", "k v") + where, paged),
        "_gate": (
            inputs("q") + states("in", "k v") + inputs("gate") + where,
            paged + window("gate"),
        ),
        "_in": (inputs("q") + states("in", "k") + where, paged),
        "_in_split": (inputs("q qt") + states("in", "k") + where, paged + ints("own")),
        "_flat": (flat + position, _SIZES + _SCORES + _FLAT),
        "_flat_split": (
            flat + states("in", "kt") + where,
            _SIZES + _PAGED + _SCORES + _FLAT + ints("own pitch column"),
        ),
    }
    for family, (read, sizes) in families.items():
        tile = FLAT_ROWS if family.startswith("_flat") else ROW_TILE
        grid = (Extent("rows", tile), Extent("groups"))
        for out, y in write_forms(coding):
            yield f"attention{family}{out}", "attention.c", read + y + sizes, grid, SCRATCH


def gather_rows(coding: Coding) -> Iterator[Row]:
    """Columns of a sequence's rows, laid one after another."""
    read = states("in", "table") + inputs("pages", "i32")
    sizes = ints("rows width page pitch column")
    for out, y in write_forms(coding):
        yield (
            f"gather{out}",
            "attention.c",
            read + y + sizes,
            (Extent("rows", GATHERED_ROWS),),
            None,
        )
