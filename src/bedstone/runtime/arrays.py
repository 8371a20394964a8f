"""NumPy's name for each element type."""

from functools import cache

import numpy as np

from bedstone.spec.dtype import DType

_PLAIN: dict[DType, type[np.generic]] = {
    "f16": np.float16,
    "f32": np.float32,
    "i8": np.int8,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
    "u8": np.uint8,
}
_EXTENDED: dict[DType, str] = {
    "bf16": "bfloat16",
    "fp8e4m3": "float8_e4m3fn",
    "fp8e8m0": "float8_e8m0fnu",
}


@cache
def numpy_dtype(name: DType) -> "np.dtype[np.generic]":
    """The type of arrays of such elements."""
    plain = _PLAIN.get(name)
    if plain is not None:
        return np.dtype(plain)
    import ml_dtypes  # noqa: PLC0415 - inputs and outputs are seldom of these types

    extended: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, _EXTENDED[name]))
    return extended
