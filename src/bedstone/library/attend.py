"""Rows of the catalog: attention over a paged table, or over keys and values made of its rows."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from bedstone.library.coding import Coding
from bedstone.library.kernel import PARTS, CacheType, Dim, Extent, Kernel, Param, Stage
from bedstone.library.params import (
    SCRATCH,
    Params,
    Row,
    floats,
    inputs,
    ints,
    outputs,
    states,
    window,
    write_forms,
)

ROW_TILE = 32
"""Rows one block of an attention owns."""

PIECE = 128
"""Positions that share a maximum, and that one block at least attends."""

PIECES = "_pieces"
"""Ends the name of an attention whose positions are cut into pieces."""

_ROUNDS = "_r"

_BLOCKS = 32
"""Of each sixteen rows, to which their pieces are dealt."""

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
        grid = (Extent("rows", ROW_TILE), Extent("groups"))
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


def rounding(kernel: Kernel) -> Kernel:
    """An attention that may round what it multiplies to bfloat16, in a module of its own."""
    stem, form = _formed(kernel.entry)
    defines = MappingProxyType({**kernel.defines, "BS_ROUND": "1"})
    return replace(
        kernel, entry=f"{stem}{_ROUNDS}{form}", module=f"{kernel.module}-r", defines=defines
    )


def _formed(entry: str) -> tuple[str, str]:
    """An entry, and the form of its result."""
    stem = entry.removesuffix("_fq").removesuffix("_q")
    return stem, entry.removeprefix(stem)


def in_pieces(kernel: Kernel) -> Kernel | None:
    """A paged attention as two launches: pieces of each row's positions, and their sum.

    None of any other kernel.
    """
    stem, form = _formed(kernel.entry)
    family = stem.removesuffix(_ROUNDS)
    if family not in _IN_PIECES:
        return None
    given = {param.name: param for param in kernel.params}
    attended, joined = (name + stem.removeprefix(family) for name in _IN_PIECES[family])
    made = [p for p in kernel.params if p.name.startswith("y")]
    left, found = outputs(PARTS), inputs(PARTS)
    gates = [p for name, p in given.items() if name.startswith("gate_")]
    sizes = [p for name, p in given.items() if name in _SCALARS]
    read = [p for name, p in given.items() if name in _READ]
    gate = [given["gate"]] if gates else []
    stages = (
        Stage(attended, (*read, *left, *sizes), _PIECES_GRID, SCRATCH),
        Stage(
            joined + form,
            (given["position"], *found, *gate, *made, *_named(given, _JOINED), *gates),
            _JOIN_GRID,
            SCRATCH,
        ),
    )
    return replace(kernel, entry=kernel.entry + PIECES, stages=stages, parts=_LEFT)


def _named(given: Mapping[str, Param], names: str) -> Iterator[Param]:
    return (given[name] for name in names.split())


def suits_pieces(sizes: Mapping[str, int], _: CacheType) -> bool:
    """Rows of one position each, where there is more than one piece."""
    alone = sizes["rows"] == 1 or sizes["stride"] == 1
    return alone and sizes["page"] * sizes["pages_width"] > PIECE


_IN_PIECES = {
    "attention": ("attention_pieces", "attention_join"),
    "attention_gate": ("attention_pieces", "attention_join_gate"),
    "attention_in": ("attention_in_pieces", "attention_join"),
    "attention_in_split": ("attention_in_split_pieces", "attention_join"),
}
"""The entries of both launches, but for the form of the result."""

_READ = frozenset(["q", "qt", "k", "v", "position", "pages"])
_SCALARS = frozenset(
    param.name for param in _SIZES + _PAGED + ints("stride") + _SCORES + ints("own")
)
_JOINED = "rows heads groups dv page pages_width window"
_PIECES_GRID = (Extent("rows", 16, _BLOCKS), Extent(), Extent())
_JOIN_GRID = (Extent("groups"), Extent("rows"), Extent())
_LEFT = MappingProxyType(
    {
        PARTS: (
            Dim(("rows",)),
            Dim(("page", "pages_width"), PIECE),
            Dim(("heads",)),
            Dim(("dv",), 1, 2),
        )
    }
)
"""Of each piece the values, the maximum and the sum of every head."""
