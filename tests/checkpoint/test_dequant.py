"""Every block format against the reference implementation."""

import gguf
import numpy as np
import pytest

from bedstone.checkpoint.dequant import dequantize
from bedstone.checkpoint.gguf import GGML_TYPES
from bedstone.errors import WeightError
from bedstone.spec.dtype import FORMATS


def random_blocks(name, rows, width, rng):
    """Rows of random bytes whose scales are finite."""
    layout = FORMATS[name]
    raw = rng.integers(0, 256, (rows, width // layout.block, layout.block_bytes), np.uint8)
    halves = {"q8_0": [0], "q4_0": [0], "q4_1": [0, 2], "q4_k": [0, 2], "q6_k": [208]}
    for start in halves.get(name, ()):
        scale = rng.uniform(-2, 2, (*raw.shape[:2], 1)).astype(np.float16)
        raw[:, :, start : start + 2] = scale.view(np.uint8)
    if not layout.quantized:
        floats = rng.normal(size=(rows, width)).astype(np.float32)
        kind = gguf.GGMLQuantizationType[name.upper()]
        return gguf.quantize(floats, kind).view(np.uint8).ravel()
    return raw.ravel()


@pytest.mark.parametrize("name", FORMATS)
def test_values_are_those_of_the_reference(name):
    rng = np.random.default_rng(7)
    raw = random_blocks(name, 5, 512, rng)
    kind = gguf.GGMLQuantizationType[name.upper()]
    theirs = gguf.dequantize(raw.reshape(5, -1), kind)
    ours = dequantize(raw, name, (5, 512))
    assert ours.dtype == np.float32
    np.testing.assert_array_equal(ours, theirs)


def test_every_readable_tensor_type_has_its_format():
    for kind in GGML_TYPES.values():
        if kind.format is not None:
            layout = FORMATS[kind.format]
            assert (layout.block, layout.block_bytes) == (kind.block, kind.nbytes)


def test_values_are_a_copy():
    raw = np.arange(8, dtype=np.uint8)
    ours = dequantize(raw, "f32", (2,))
    raw[:] = 0
    assert ours.any()


@pytest.mark.parametrize(("nbytes", "shape"), [(33, (32,)), (34, (33,)), (34, (64,))])
def test_bytes_that_do_not_fit_the_shape_are_refused(nbytes, shape):
    with pytest.raises(WeightError, match=f"{nbytes} bytes do not hold a `q8_0` tensor"):
        dequantize(np.zeros(nbytes, np.uint8), "q8_0", shape)
