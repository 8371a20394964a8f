"""Geometry of the CUDA kernels: what a dense layer does behind its attention, for one row.

One launch does the output product, the sum and its norm, the gated unit and the product back, and
of the next layer the sum, the norm, and the products; behind the last layer, of the head. Blocks
wait for each other within it, weights of what comes next being on their way.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from bedstone.library.cuda.dense import threads
from bedstone.library.kernel import (
    CacheType,
    Extent,
    Geometry,
    Joining,
    Settled,
    Shared,
    Suits,
    Taken,
)
from bedstone.spec.dtype import FORMATS, Format, FormatName

BLOCKS = 132
"""All of them are to run at once: one a multiprocessor."""

SHARED = 217 * 1024
"""Bytes of a block: all that a multiprocessor has, but for what its sums stand in."""

MOST_WIDTH, MOST_FF = 16384, 65536
"""What blocks tell each other lies in memory of the module, which has room for so many outputs."""

_SPAN = 256
"""Values that a warp multiplies at a time."""

_LOT = 32
"""Values that share a scale; in 44 bytes they are coded, with a share of the row's squares."""

_WARPS = 8
"""They share a row, a span each in turn: no row is shorter than all of theirs."""

_ROWS = 16
"""Rows of weights that are fetched and multiplied at a time."""

MATRICES: tuple[FormatName, ...] = ("q4_k", "q8_0", "q6_k", "q4_0", "q4_1")
"""The formats that it was measured with."""

HALVES: FormatName = "bf16"
"""The format of a source of its own."""

_STEP = 32
"""Values of bfloat16 that a warp multiplies at a time."""

_TERMS = 6
"""Bytes of an activation beside them: three terms."""

_TILE = 16 * (2 * 16 * 2 * _STEP + 16)
"""Bytes of a tile of bfloat16 weights."""

_MOST_WEIGHTS = 48_000_000
"""Of bfloat16 up to the product back: where they take longer than what lies between products, one
launch is no faster. 42 million (Qwen3-1.7B) gained 7 %, 55 million (Llama-3.2-1B) lost 3 %."""

_MOST = {"width": 8192, "ff": 24576}
"""Values that blocks tell each other of bfloat16 products, at most."""

_SETTLED: Mapping[str, Settled] = {"rows": 1}

_HANDED = frozenset({"o", "mid", "m", "h", "d", "xn"})

_LAYER = ("attended", "wo", "x", "w_post", "wg", "wu", "wd", "w_in")
_SIZES = ("inner", "width", "ff")
_NORMS = ("act", "eps_post", "plus_one_post", "eps", "plus_one")


@dataclass(frozen=True, slots=True)
class _Last:
    """The products at a launch's end: their entry, and the parameters as the source has them."""

    stem: str
    ending: str
    matrices: tuple[str, ...]
    results: tuple[str, ...]
    sizes: tuple[str, ...]

    def entry(self, fmt: str) -> str:
        """As the products alone are called."""
        return f"{self.stem}_{fmt}{self.ending}"

    def order(self) -> tuple[str, ...]:
        """All parameters."""
        return (*_LAYER, *self.matrices, *self.results, *_SIZES, *self.sizes, *_NORMS)

    def handed(self) -> frozenset[str]:
        """Tensors that lie nowhere; nobody adds to the sum behind the last layer."""
        return _HANDED if "sum" in self.results else _HANDED | {"sum"}


_LASTS = (
    _Last(
        "parts3", "_rows",
        ("w0", "w1", "w2"), ("sum", "y0", "y1", "table", "slot"), ("n0", "n1", "n2"),
    ),
    _Last("linear", "", ("w",), ("y",), ("n",)),
)  # fmt: skip


def _taken(fmt: str, last: _Last) -> tuple[Taken, ...]:
    linear = f"linear_{fmt}"
    norm = {"unit": "width"}
    return (
        Taken(linear, {"x": "attended", "w": "wo", "y": "o", "k": "inner", "n": "width"}),
        Taken(
            "add_norm",
            {"d": "o", "w": "w_post", "sum": "mid", "y": "m", "eps": "eps_post",
             "plus_one": "plus_one_post", **norm},
        ),
        Taken(f"glu_{fmt}", {"x": "m", "y": "h", "k": "width", "n": "ff"}),
        Taken(linear, {"x": "h", "w": "wd", "y": "d", "k": "ff", "n": "width"}),
        Taken("add_norm", {"x": "mid", "w": "w_in", "y": "xn", **norm}),
        Taken(last.entry(fmt), {"x": "xn", "k": "width"}),
    )  # fmt: skip


def _suits(fmt: Format) -> Suits:
    """Rows of a span a warp at least, and two tiles of weights beside a row that is waited for."""
    tile = _ROWS * (fmt.row_bytes(_SPAN * _WARPS) + 48)

    def suits(sizes: Mapping[str, int], _: CacheType) -> bool:
        width, rows = sizes["width"], (sizes["inner"], sizes["width"], sizes["ff"])
        told = width <= MOST_WIDTH and sizes["ff"] <= MOST_FF and width % _LOT == 0
        coded = -(-max(rows) // _SPAN) * _SPAN // _LOT * 44
        own = 3 * 4 * _LOT * -(-width // (_LOT * BLOCKS))
        return told and min(rows) >= _SPAN * _WARPS and SHARED - coded - own >= 2 * tile

    return suits


def _halves_suit(sizes: Mapping[str, int], _: CacheType) -> bool:
    """Few weights, rows of whole steps, and two tiles beside a row that is waited for."""
    width, rows = sizes["width"], [sizes[n] for n in ("inner", "width", "ff")]
    few = width * (sizes["inner"] + 3 * sizes["ff"]) <= _MOST_WEIGHTS
    told = all(sizes[name] <= most for name, most in _MOST.items())
    room = SHARED - _TERMS * max(rows) - 4 * (width + -(-width // BLOCKS) + 3)
    return few and told and not any(n % _STEP for n in rows) and room >= 2 * _TILE


def _kernel(name: FormatName) -> tuple[str, Suits]:
    """The source for matrices of a format, and what it suits."""
    return ("tail_bf16.cu", _halves_suit) if name == HALVES else ("tail.cu", _suits(FORMATS[name]))


def _joinings() -> Iterator[Joining]:
    for name, last in product((*MATRICES, HALVES), _LASTS):
        source, suits = _kernel(name)
        yield Joining(
            kind="tail",
            entry=f"tail_{last.entry(name)}",
            taken=_taken(name, last),
            handed=last.handed(),
            geometry=Geometry(
                block=threads(640),
                grid=(Extent(times=BLOCKS),),
                shared=Shared(SHARED),
                source=source,
            ),
            suits=suits,
            settled=_SETTLED,
            order=last.order(),
            roomy=True,
        )


JOININGS: tuple[Joining, ...] = tuple(_joinings())
"""Kernels that do the rest of a layer and the next one's first products, the first that suits."""
