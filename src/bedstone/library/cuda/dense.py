"""Geometry of the CUDA kernels: norms, rotations, moves, elementwise functions."""

from dataclasses import replace

from bedstone.library.kernel import Extent, Geometry, Shared, Variant

_ROW = (Extent("rows"),)

_FLOAT = 4


def threads(count: int) -> tuple[int, int, int]:
    """A block of one row of threads."""
    return count, 1, 1


def _norm(rows: int) -> Geometry:
    """A block is a row, whose values and `rows - 1` rows of weights lie in shared memory."""
    # each row of weights is made up to a whole number of four values
    shared = Shared(_FLOAT * 4 * rows, (("width", _FLOAT * rows),))
    return Geometry(threads(256), _ROW, shared)


_ONE_ROW = Geometry(threads(256), _ROW)
_EACH = Geometry(threads(256), (Extent("count", 4 * 256),))
_CLUSTER = Geometry(threads(1024), (Extent(times=8),), cluster=(8, 1, 1))
_ROW_CLUSTER = Geometry(threads(512), (Extent(times=8),), cluster=(8, 1, 1))
_ROW_CLUSTERS = Geometry(threads(512), (Extent("rows", times=4),), cluster=(4, 1, 1))
_HEADS = Geometry(threads(128), (Extent("rows"), Extent(times=10)))

_ENTRIES: dict[Geometry, str] = {
    # the mathematics that every CUDA source is compiled with has a `norm` of its own
    replace(_norm(2), function="norm_f"): "norm",
    _norm(2): "norm_q norm_fq norm_p norm_cols norm_p_cols l2norm add_norm add_norm_q add_norm_fq "
    "gated_norm gated_norm_q gated_norm_fq",
    _norm(3): "add_norm_pre add_norm_pre_q add_norm_pre_fq",
    _HEADS: "rope rope_rows rope_cols rope_n* rope_p*",
    Geometry(threads(256), (Extent("capacity", 64),)): "rope_table",
    _ONE_ROW: "quantize quantize_p set_rows set_cols add_row take_part concat silu_p gelu_tanh_p "
    "sigmoid_p softplus_p embed_*",
    Geometry(threads(256), ()): "take_row",
    _CLUSTER: "argmax argmax_rows",
    _ROW_CLUSTER: "sample sample_carried",
    _ROW_CLUSTERS: "sample_rows sample_carried_rows",
    Geometry(threads(32), ()): "finish finish_rows",
    _EACH: "add mul silu gelu_tanh sigmoid softplus copy_rows scale softcap cast_f16_f32 "
    "cast_bf16_f32",
}

GEOMETRIES: tuple[tuple[str, Geometry], ...] = tuple(
    (pattern, geometry) for geometry, patterns in _ENTRIES.items() for pattern in patterns.split()
)
"""Patterns of entry names, the first that matches deciding."""

VARIANTS: tuple[Variant, ...] = ()
"""Kernels to take in place of others where they suit, the first that does."""
