"""Rows of the catalog: what carries a state of each sequence, in a line of its own."""

from collections.abc import Iterator

from bedstone.library.coding import Coding
from bedstone.library.kernel import Extent, Shared
from bedstone.library.params import (
    EACH_ROW,
    Params,
    Row,
    floats,
    inputs,
    ints,
    outputs,
    states,
    window,
)

CHANNELS = 128
"""Channels of a convolution a block owns, at least."""

COLUMNS = 32
"""Columns of a head's state a block owns."""

_WHERE = inputs("line position", "i32")
_TAPS = Shared(0, (("taps", 64),))
"""A vector of each tap, as wide as the widest set's."""


def recurrent_rows(_: Coding) -> Iterator[Row]:
    """Decays, convolutions, and the gated delta rule."""
    a = inputs("a a_log dt") + outputs("y") + ints("rows heads") + window("a")
    yield "decay", "delta.c", a, EACH_ROW, None
    yield (
        "conv",
        "conv.c",
        _convolutions(("",)),
        (Extent("channels", CHANNELS), Extent("seqs")),
        _TAPS,
    )
    for count in (2, 3):
        params = _convolutions(tuple(map(str, range(count))))
        grid = (Extent("channels0", CHANNELS), Extent("seqs"))
        yield f"conv_parts{count}", "conv.c", params, grid, _TAPS
    heads = (Extent("heads"), Extent("seqs"), Extent("dv", COLUMNS))
    sizes = ints("rows seqs key_heads heads dk dv") + floats("scale")
    rest = states("inout", "state") + _WHERE + outputs("y") + sizes
    yield "delta", "delta.c", inputs("q k v g beta") + rest, heads, None
    gates = inputs("q k v a b a_log dt") + rest + window("a", "b")
    yield "delta_gates", "delta.c", gates, heads, None


def _convolutions(numbers: tuple[str, ...]) -> Params:
    """The parameters of a convolution, or of several side by side."""

    def each(stem: str) -> str:
        return " ".join(f"{stem}{number}" for number in numbers)

    read: Params = ()
    for number in numbers:
        read += inputs(f"x{number} w{number}") + states("inout", f"ring{number}")
    return (
        *(read + _WHERE + outputs(each("y"))),
        *ints(f"rows seqs {each('channels')} taps act {each('unit')}"),
        *floats("eps"),
        *window(*each("x").split()),
    )
