"""Geometry of the CUDA kernels: products of coded activations, on the matrix units."""

from collections.abc import Mapping

from bedstone.library.kernel import Boxes, CacheType, Extent, Geometry, Shared, Variant
from bedstone.library.params import numbered
from bedstone.spec.dtype import FORMATS

ENDINGS = ("", "_b", "_rows", "_b_rows")
FORMS = ("", "_q", "_fq")

BATCH_ROWS = 64
"""The most rows of a product whose weights pass by once."""

_HALF = Shared(112 * 1024)
"""Of a multiprocessor: a launch's weights arrive while the one before still runs."""


def _any_rows(only: str) -> Geometry:
    """Of 132 multiprocessors clusters of four take no more than these."""
    return Geometry(
        block=(256, 1, 1),
        grid=(Extent(times=128),),
        shared=_HALF,
        cluster=(4, 1, 1),
        source="gemm.cu",
        only=only,
    )


def _batch(only: str, boxes: tuple[Boxes, ...]) -> Geometry:
    """Eight warps that multiply, one that has operands fetched: a block a multiprocessor.

    Beside it there is room for a row of a norm. A gated unit's clusters are of two, which fit all
    132 multiprocessors; of the others' no more than 30 fit, whose blocks would else share some.
    """
    cluster, count = (2, 132) if only.startswith("glu") else (4, 120)
    return Geometry(
        block=(288, 1, 1),
        grid=(Extent(times=count),),
        shared=Shared(200 * 1024),
        cluster=(cluster, 1, 1),
        source="gemm_batch.cu",
        boxes=boxes,
        only=only,
    )


def _tall(only: str, boxes: tuple[Boxes, ...]) -> Geometry:
    """Two warpgroups that multiply, one that has operands fetched; 68 KiB for sums laid out."""
    return Geometry(
        block=(384, 1, 1),
        grid=(Extent(times=132),),
        shared=Shared(212 * 1024),
        source="gemm_tall.cu",
        boxes=boxes,
        only=only,
    )


def _boxes(weights: str, outputs: str, x: tuple[int, ...], w: tuple[int, ...]) -> tuple[Boxes, ...]:
    """Boxes of the activations, as high as `x` says, then of each matrix of weights, as `w` says.

    A large box is asked for as quickly as a small one.
    """
    matrices = zip(weights.split(), outputs.split(), strict=True)
    return (
        *(Boxes("xq", "rows", height) for height in x),
        *(Boxes(name, rows, height) for name, rows in matrices for height in w),
    )


_X_BATCH, _W_BATCH = (16, 32, 64), (8, 16, 32, 64, 128)
_X_TALL, _WIDTHS = (128,), (256, 160, 128, 64)
"""How high boxes are; of a tall tile one is as high as the tile is wide, or half where gated."""


_FAMILIES: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("linear", "w", "n", (*ENDINGS, "_add", "_b_add", "_cap")),
    *((f"parts{i}", numbered("w", i), numbered("n", i), ENDINGS) for i in (2, 3)),
    ("parts4", numbered("w", 4), numbered("n", 4), ("",)),
    ("glu", "wg wu", "n n", FORMS),
)
"""Each family's name, its weights, the parameter that counts the rows of each, its endings."""


def _heights(family: str) -> tuple[int, ...]:
    return tuple(width // 2 if family == "glu" else width for width in _WIDTHS)


GEOMETRIES: tuple[tuple[str, Geometry], ...] = (
    *(
        (
            f"{family}_q_bf16{ending}_batch",
            _batch(family + ending, _boxes(weights, outputs, _X_BATCH, _W_BATCH)),
        )
        for family, weights, outputs, endings in _FAMILIES
        for ending in endings
    ),
    *(
        (
            f"{family}_q_bf16{ending}_tall",
            _tall(family + ending, _boxes(weights, outputs, _X_TALL, _heights(family))),
        )
        for family, weights, outputs, endings in _FAMILIES
        for ending in endings
    ),
    *(
        (f"{family}_q_{name}{ending}", _any_rows(family + ending))
        for family, _, _, endings in _FAMILIES
        for name in FORMATS
        if name != "f32"
        for ending in endings
    ),
)
"""Patterns of entry names, the first that matches deciding."""


def _of_a_batch(sizes: Mapping[str, int], _: CacheType) -> bool:
    return sizes["rows"] <= BATCH_ROWS


def _of_a_chunk(sizes: Mapping[str, int], _: CacheType) -> bool:
    return sizes["rows"] > BATCH_ROWS


VARIANTS: tuple[Variant, ...] = tuple(
    Variant(f"{family}_q_bf16{ending}", suffix, suits)
    for family, _, _, endings in _FAMILIES
    for ending in endings
    for suffix, suits in (("_batch", _of_a_batch), ("_tall", _of_a_chunk))
)
"""Kernels to take in place of others where they suit, the first that does."""
