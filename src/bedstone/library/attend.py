"""Rows of the catalog: attention over a paged table."""

from collections.abc import Iterator

from bedstone.library.kernel import Extent
from bedstone.library.params import SCRATCH, Row, floats, inputs, ints, states, write_forms

ROW_TILE = 4
"""Rows one block of an attention owns."""


def attention_rows() -> Iterator[Row]:
    """Attention in every form of its output."""
    read = inputs("q") + states("in", "k v") + inputs("position pages", "i32")
    sizes = ints("rows heads groups dk dv page pages_width stride")
    scalars = floats("scale") + ints("window") + floats("softcap")
    grid = (Extent("rows", ROW_TILE), Extent("groups"))
    for out, y in write_forms():
        yield f"attention{out}", "attention.c", read + y + sizes + scalars, grid, SCRATCH
