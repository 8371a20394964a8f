"""Geometry of the CUDA kernels: attention and gathers.

Over bfloat16 keys and values of some widths attention has kernels on the matrix units, for rows
one by one and for many of one sequence; whatever else it is asked for is done in float32. Few rows
share the multiprocessors by clusters of eight blocks.
"""

from collections.abc import Iterator, Mapping

from bedstone.library.cuda.dense import threads
from bedstone.library.kernel import CacheType, Extent, Geometry, Shared, Suits, Variant

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
_SPREAD = (*_GRID, Extent(times=_PIECES))
_CLUSTER = (1, 1, _PIECES)

# queries made up to 32 values; what the threads sum apart; a piece's values and those of all so far
_ANY = Shared(
    _HEADS * _FLOAT * (32 + 4 * 256), (("dk", _HEADS * _FLOAT), ("dv", 2 * _HEADS * _FLOAT))
)

_FORMS = ("", "_q", "_fq")
_PLAIN = tuple(f"{family}{form}" for family in ("attention", "attention_gate") for form in _FORMS)


def _one(depth: int) -> Shared:
    """Queries in halves; the values of each warp, or of each two where they share a tile."""
    slices = _HEADS * _FLOAT * min(8 * depth, 1024)
    return Shared(_HEADS * _FLOAT * depth + slices + _HEADS * _FLOAT * depth)


def _many(depth: int, entry: str) -> Geometry:
    """A block is 128 rows of a head; two tiles of keys and values lie in shared memory."""
    # the warpgroups' operands begin at multiples of 1,024
    tile = 32 if depth > 128 else 64
    grid = (Extent("rows", 128), Extent("heads"))
    shared = Shared(1024 + 2 * 2 * tile * depth * 2)
    return Geometry(_BLOCK, grid, shared, None, f"attention_many_{depth}.cu", entry, only=entry)


def _geometries() -> Iterator[tuple[str, Geometry]]:
    for depth in DEPTHS:
        source = f"attention_{depth}.cu"
        for entry in _PLAIN:
            yield f"{entry}_m{depth}", _many(depth, entry)
            few = Geometry(_BLOCK, _SPREAD, _one(depth), _CLUSTER, source, entry, only=entry)
            yield f"{entry}_d{depth}_x8", few
            each = Geometry(_BLOCK, _GRID, _one(depth), None, source, entry, only=entry)
            yield f"{entry}_d{depth}", each
    for family in ("", "_gate", "_in", "_in_split", "_flat", "_flat_split"):
        source = "attention_flat.cu" if family.startswith("_flat") else "attention.cu"
        for form in _FORMS:
            entry = f"attention{family}{form}"
            few = Geometry(_BLOCK, _SPREAD, _ANY, _CLUSTER, source, entry, only=entry)
            yield f"{entry}_x8", few
            yield entry, Geometry(_BLOCK, _GRID, _ANY, None, source, entry, only=entry)
    gathered = Geometry(_BLOCK, (Extent("rows", 16),), source="gather.cu")
    yield from ((f"gather{form}", gathered) for form in _FORMS)


GEOMETRIES: tuple[tuple[str, Geometry], ...] = tuple(_geometries())
"""Patterns of entry names, the first that matches deciding."""


def _few(sizes: Mapping[str, int]) -> bool:
    return sizes["rows"] * sizes["groups"] < _FULL


def _matrix_units(depth: int, sizes: Mapping[str, int], cache: CacheType) -> bool:
    return cache == "bf16" and sizes["dk"] == sizes["dv"] == depth


def _suiting(depth: int) -> tuple[tuple[str, Suits], ...]:
    """Kernels of a depth by their suffix."""

    def many(sizes: Mapping[str, int], cache: CacheType) -> bool:
        chunk = sizes["stride"] == 0 and sizes["rows"] > _CHUNK
        return chunk and _matrix_units(depth, sizes, cache)

    def few(sizes: Mapping[str, int], cache: CacheType) -> bool:
        return _few(sizes) and _matrix_units(depth, sizes, cache)

    def each(sizes: Mapping[str, int], cache: CacheType) -> bool:
        return _matrix_units(depth, sizes, cache)

    return (f"_m{depth}", many), (f"_d{depth}_x8", few), (f"_d{depth}", each)


def _variants() -> Iterator[Variant]:
    for entry in _PLAIN:
        for depth in DEPTHS:
            yield from (Variant(entry, suffix, suits) for suffix, suits in _suiting(depth))
    yield Variant("attention*", "_x8", lambda sizes, _: _few(sizes))


VARIANTS: tuple[Variant, ...] = tuple(_variants())
"""Kernels to take in place of others where they suit, the first that does."""
