"""Geometry of the CUDA kernels: attention and gathers.

Over bfloat16 keys and values of some widths attention has kernels on the matrix units, for rows
one by one and for many of one sequence; whatever else it is asked for is done in float32. Few rows
share the multiprocessors by clusters of blocks.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from bedstone.library.cuda.dense import threads
from bedstone.library.kernel import (
    Boxes,
    CacheType,
    Extent,
    Geometry,
    Joining,
    Shared,
    Suits,
    Taken,
    Variant,
)

DEPTHS = (64, 128, 256)
"""Widths of keys and values that the matrix units' kernels are made for."""

_HEADS = 8
_FLOAT = 4
_PIECES = 8
_BLOCK = threads(256)
_FULL = 128
"""Blocks that fill a GPU without clusters."""

_CHUNK = 8
"""The most rows of one sequence that are attended one by one."""

_GRID = (Extent("rows"), Extent("groups"))

_TABLES = (Boxes("k", None, 32, ("groups", "dk")), Boxes("v", None, 32, ("groups", "dv")))


@dataclass(frozen=True, slots=True)
class _Ring:
    """Warps of a block, tiles that each has on their way, and blocks a multiprocessor."""

    warps: int
    tiles: int
    blocks: int

    @property
    def defines(self) -> tuple[tuple[str, str], ...]:
        """What the source is told of it."""
        numbers = (self.warps, self.tiles, self.blocks)
        return tuple(zip(("WARPS", "STAGES", "BLOCKS"), map(str, numbers), strict=True))

    def shared(self, depth: int) -> Shared:
        """Keys and values of 16 positions a tile."""
        return Shared(self.warps * self.tiles * 2 * 16 * depth * 2)


_SHARED_BY = ((8, 16), (4, 32), (2, 64))
"""How many blocks share a row's heads of a group while there are at most so many of those."""

_FEW = {64: _Ring(4, 4, 3), 128: _Ring(4, 2, 2), 256: _Ring(2, 2, 3)}
_EACH = {64: _Ring(4, 4, 3), 128: _Ring(2, 3, 4), 256: _Ring(2, 2, 3)}
"""By depth, where clusters share rows and where they do not."""

_ROOMY = {(128, 8): _Ring(8, 2, 1)}
"""By depth and the blocks of a cluster, where there is room for more."""

# queries made up to 32 values; what the threads sum apart; a piece's values and those of all so far
_ANY = Shared(
    _HEADS * _FLOAT * (32 + 4 * 256), (("dk", _HEADS * _FLOAT), ("dv", 2 * _HEADS * _FLOAT))
)

_FORMS = ("", "_q", "_fq")
_FAMILIES = ("", "_gate", "_in", "_in_split", "_flat", "_flat_split")
_PLAIN = tuple(f"{family}{form}" for family in ("attention", "attention_gate") for form in _FORMS)


def _many(depth: int, entry: str) -> Geometry:
    """A block is 128 rows of a head; two tiles of keys and values lie in shared memory."""
    tile = 32 if depth > 128 else 64
    grid = (Extent("rows", 128), Extent("heads"))
    shared = Shared(2 * 2 * tile * depth * 2)
    return Geometry(_BLOCK, grid, shared, None, f"attention_many_{depth}.cu", entry, only=entry)


def _by_warpgroups(depth: int, entry: str) -> Geometry:
    """Two warpgroups that multiply, one that has keys and values fetched; each block has its turns.

    Two tiles of both lie in shared memory beside 128 rows of queries, and the next ones as floats
    where there is room.
    """
    tile, rows = 64 if depth > 128 else 128, 128
    ahead = 0 if depth > 128 else rows * depth * _FLOAT
    # operands begin at multiples of 1,024
    shared = Shared(1024 + (rows + 2 * 2 * tile) * depth * 2 + ahead)
    return Geometry(
        block=threads(384),
        grid=(Extent(times=132),),
        shared=shared,
        source=f"attention_many_wgmma_{depth}.cu",
        function=entry,
        boxes=_TABLES,
        only=entry,
    )


def _shared_by(blocks: int, shared: Shared, source: str, entry: str) -> Geometry:
    grid = (*_GRID, Extent(times=blocks))
    return Geometry(_BLOCK, grid, shared, (1, 1, blocks), source, entry, only=entry)


def _heads(sizes: Mapping[str, int]) -> int:
    """Rows' heads of a group: blocks, where none are shared."""
    return sizes["rows"] * sizes["groups"]


def _matrix_units(depth: int, sizes: Mapping[str, int], cache: CacheType) -> bool:
    return cache == "bf16" and sizes["dk"] == sizes["dv"] == depth


def _many_suit(depth: int) -> Suits:
    def suits(sizes: Mapping[str, int], cache: CacheType) -> bool:
        chunk = sizes["stride"] == 0 and sizes["rows"] > _CHUNK
        return chunk and _matrix_units(depth, sizes, cache)

    return suits


def _one_suits(depth: int, most: int) -> Suits:
    return lambda sizes, cache: _heads(sizes) <= most and _matrix_units(depth, sizes, cache)


def _each_suits(depth: int) -> Suits:
    return lambda sizes, cache: _matrix_units(depth, sizes, cache)


def _one(depth: int, entry: str) -> Iterator[tuple[str, Geometry, Suits]]:
    """The kernels for rows one by one: suffixes, and what they suit."""
    for blocks, most in _SHARED_BY:
        made = _ringed(depth, entry, _FEW[depth], blocks)
        room = _ROOMY.get((depth, blocks))
        if room is not None:
            made = replace(made, roomy=_ringed(depth, entry, room, blocks))
        yield f"_d{depth}_x{blocks}", made, _one_suits(depth, most)
    yield f"_d{depth}", _ringed(depth, entry, _EACH[depth]), _each_suits(depth)


def _ringed(depth: int, entry: str, ring: _Ring, blocks: int | None = None) -> Geometry:
    return Geometry(
        threads(32 * ring.warps),
        _GRID if blocks is None else (*_GRID, Extent(times=blocks)),
        ring.shared(depth),
        None if blocks is None else (1, 1, blocks),
        f"attention_{depth}.cu",
        entry,
        only=entry,
        defines=ring.defines,
    )


def _geometries() -> Iterator[tuple[str, Geometry]]:
    for depth, entry in product(DEPTHS, _PLAIN):
        yield f"{entry}_w{depth}", _by_warpgroups(depth, entry)
        yield f"{entry}_m{depth}", _many(depth, entry)
        yield from ((entry + suffix, made) for suffix, made, _ in _one(depth, entry))
    for family, form in product(_FAMILIES, _FORMS):
        source = "attention_flat.cu" if family.startswith("_flat") else "attention.cu"
        entry = f"attention{family}{form}"
        yield f"{entry}_x{_PIECES}", _shared_by(_PIECES, _ANY, source, entry)
        yield entry, Geometry(_BLOCK, _GRID, _ANY, None, source, entry, only=entry)
    gathered = Geometry(_BLOCK, (Extent("rows", 16),), source="gather.cu")
    yield from ((f"gather{form}", gathered) for form in _FORMS)


GEOMETRIES: tuple[tuple[str, Geometry], ...] = tuple(_geometries())
"""Patterns of entry names, the first that matches deciding."""


def _variants() -> Iterator[Variant]:
    for entry, depth in product(_PLAIN, DEPTHS):
        for many in ("_w", "_m"):
            yield Variant(entry, f"{many}{depth}", _many_suit(depth))
        for suffix, _, suits in _one(depth, entry):
            yield Variant(entry, suffix, suits)
    yield Variant("attention*", f"_x{_PIECES}", lambda sizes, _: _heads(sizes) < _FULL)


VARIANTS: tuple[Variant, ...] = tuple(_variants())
"""Kernels to take in place of others where they suit, the first that does."""


_TURNED = Taken("rope_parts", {"y0": "q"}), Taken("attention", {"k": "table"})
"""Queries go from one to the other, and so does the newest key, which its table gets all the same.
"""


def _whole_heads(suits: Suits) -> Suits:
    """Whether each row is a sequence's: keys of no other are made in the same launch."""

    def alone(sizes: Mapping[str, int], cache: CacheType) -> bool:
        one = sizes["rows"] == 1 or sizes["stride"] == 1
        turned = (sizes["heads0"], sizes["heads1"], sizes["head_dim"])
        same = turned == (sizes["heads"], sizes["groups"], sizes["dk"])
        return one and same and suits(sizes, cache)

    return alone


def _joinings() -> Iterator[Joining]:
    rope, attention = _TURNED
    for normed, form, depth in product(("", "_n"), _FORMS, DEPTHS):
        taken = (
            replace(rope, entry=f"rope_parts{normed}_rows"),
            replace(attention, entry=f"attention{form}"),
        )
        entry = f"attention_turned{normed}{form}"
        for suffix, made, suits in _one(depth, entry):
            yield Joining(
                kind="attention_turned",
                entry=entry + suffix,
                taken=taken,
                handed=frozenset({"q"}),
                geometry=made,
                suits=_whole_heads(suits),
            )


JOININGS: tuple[Joining, ...] = tuple(_joinings())
"""Kernels that rotate a row's queries and its key before they attend, the first that suits."""
