"""NumPy's name for each element type."""

import ml_dtypes
import numpy as np

from bedstone.spec.dtype import DType

NUMPY_DTYPES: dict[DType, "np.dtype[np.generic]"] = {
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "fp8e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8e8m0": np.dtype(ml_dtypes.float8_e8m0fnu),
    "i8": np.dtype(np.int8),
    "i32": np.dtype(np.int32),
    "u32": np.dtype(np.uint32),
    "i64": np.dtype(np.int64),
    "u64": np.dtype(np.uint64),
    "u8": np.dtype(np.uint8),
}
