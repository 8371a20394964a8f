"""What kernels must compute, in float64 NumPy; quantized rows are read by the `gguf` package."""

import ml_dtypes
import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

from bedstone.spec.dtype import FORMATS, FormatName

Array = np.ndarray

HALVES: dict[str, tuple[int, ...]] = {
    "q8_0": (0,), "q4_0": (0,), "q4_1": (0, 2), "q4_k": (0, 2), "q6_k": (208,),
}  # fmt: skip
"""Where a block's half floats lie."""


def weights(name: FormatName, n: int, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """A random matrix [n, k]: as stored, and its values in float64."""
    fmt = FORMATS[name]
    if not fmt.quantized:
        dtype = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[name]
        stored = rng.standard_normal((n, k)).astype(dtype)
        return stored, stored.astype(np.float64)
    blocks = rng.integers(0, 256, (n, k // fmt.block, fmt.block_bytes), np.uint8)
    for at in HALVES[name]:
        scales = rng.uniform(-0.02, 0.02, blocks.shape[:2]).astype(np.float16)
        blocks[..., at : at + 2] = scales[..., None].view(np.uint8)
    stored = blocks.reshape(n, -1)
    return stored, dequantize(stored, GGMLQuantizationType[name.upper()]).astype(np.float64)


def quantize(x: Array) -> tuple[Array, Array, Array]:
    """Codes, scales and sums of each 32 float32 values of a row."""
    blocks = x.reshape(x.shape[0], -1, 32)
    scale = np.abs(blocks).max(-1) / np.float32(127)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(scale[..., None] > 0, blocks / scale[..., None], 0).astype(np.float64)
    codes = (np.sign(ratio) * np.floor(np.abs(ratio) + 0.5)).astype(np.int8)
    return codes.reshape(x.shape), scale, codes.sum(-1, dtype=np.int32)


def unquantize(codes: Array, scales: Array) -> Array:
    return codes.astype(np.float64) * np.repeat(scales.astype(np.float64), 32, axis=-1)


def norm(x: Array, w: Array, unit: int, eps: float, plus_one: int = 0) -> Array:
    units = x.astype(np.float64).reshape(x.shape[0], -1, unit)
    normed = units / np.sqrt((units**2).mean(-1, keepdims=True) + eps)
    return (normed * (plus_one + w.astype(np.float64))).reshape(x.shape)


def silu(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return x / (1 + np.exp(-x))


def gelu_tanh(x: Array) -> Array:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


ACTS = (silu, gelu_tanh)


def rope(x: Array, cos: Array, sin: Array, rot: int, kind: int) -> Array:
    """`x` [rows, heads, head_dim], `cos` and `sin` [rows, rot / 2]."""
    y = x.astype(np.float64)
    half = rot // 2
    first, second = (
        (slice(0, rot, 2), slice(1, rot, 2)) if kind else (slice(0, half), slice(half, rot))
    )
    a, b, c, s = y[..., first].copy(), y[..., second].copy(), cos[:, None, :], sin[:, None, :]
    y[..., first], y[..., second] = a * c - b * s, b * c + a * s
    return y


def attention(
    q: Array,
    k: Array,
    v: Array,
    position: int,
    scale: float,
    *,
    window: int = 0,
    softcap: float = 0.0,
) -> Array:
    """One row's `q` [heads, dk] over the sequence's `k` [len, groups, dk] and `v`."""
    first = max(position - window + 1, 0) if window else 0
    seen = slice(first, position + 1)
    each = q.shape[0] // k.shape[1]
    out = []
    for head, query in enumerate(q.astype(np.float64)):
        scores = scale * (k[seen, head // each].astype(np.float64) @ query)
        if softcap:
            scores = softcap * np.tanh(scores / softcap)
        weight = np.exp(scores - scores.max())
        out.append(weight / weight.sum() @ v[seen, head // each].astype(np.float64))
    return np.array(out)
