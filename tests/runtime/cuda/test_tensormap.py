"""Extents of tensor maps against the memory they are over, element by element."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedstone.errors import KernelError
from bedstone.runtime.cuda.tensormap import tiled_map
from bedstone.spec.manifest import TensorMap

BITS = {"u8": 8, "bf16": 16, "f32": 32, "i64": 64, "u4": 4}


def last_byte(tensor, dims):
    """One past the last byte of any element, found by visiting all."""
    return max(
        sum(at * stride for at, stride in zip(where[1:], tensor.strides, strict=True))
        + ((where[0] + 1) * BITS[tensor.dtype] + 7) // 8
        for where in product(*(range(extent) for extent in dims))
    )


tensors = st.builds(
    lambda dtype, dims, strides: TensorMap(
        0, dtype, tuple(dims), (16,) * len(dims), tuple(strides[: len(dims) - 1])
    ),
    st.sampled_from(sorted(BITS)),
    st.lists(st.integers(1, 5), min_size=2, max_size=4),
    st.lists(st.sampled_from([16, 32, 48, 160]), min_size=3, max_size=3),
)


@given(tensors, st.integers(-40, 40))
def test_a_tensor_fits_when_its_last_element_does(tensor, slack):
    size = last_byte(tensor, tensor.dims)
    if slack >= 0:
        assert tiled_map(tensor, 4096, size + slack).dims == tensor.dims
    else:
        with pytest.raises(KernelError, match=rf"spans {size} bytes, {size + slack} are left"):
            tiled_map(tensor, 4096, size + slack)


@settings(max_examples=60)
@given(tensors, st.integers(0, 600))
def test_an_outermost_extent_of_0_takes_all_that_fit(tensor, room):
    open_ended = TensorMap(0, tensor.dtype, (*tensor.dims[:-1], 0), tensor.box, tensor.strides)
    fitting = [n for n in range(1, 42) if last_byte(tensor, (*tensor.dims[:-1], n)) <= room]
    if fitting:
        assert tiled_map(open_ended, 0, room).dims == (*tensor.dims[:-1], max(fitting))
    else:
        with pytest.raises(KernelError, match="does not hold one outermost row"):
            tiled_map(open_ended, 0, room)


def test_a_map_that_wraps_on_purpose_may_span_more():
    tensor = TensorMap(0, "f32", (64, 100), (32, 8), (16,), wrap=True)
    assert tiled_map(tensor, 0, 512).dims == (64, 100)


def test_the_driver_s_numbers():
    tensor = TensorMap(
        1, "bf16", (64, 8), (64, 8), (128,), swizzle=128, l2_promotion=256, oob_nan=True
    )
    tiled = tiled_map(tensor, 1024, 4096)
    assert (tiled.dtype, tiled.swizzle, tiled.promotion, tiled.oob_nan) == (9, 3, 3, True)
    assert (tiled.address, tiled.strides, tiled.box) == (1024, (128,), (64, 8))


def test_an_address_off_its_boundary():
    with pytest.raises(KernelError, match="starts at byte 8 of 16"):
        tiled_map(TensorMap(0, "u8", (16,), (16,)), 24, 100)


@pytest.mark.parametrize(("dims", "stride"), [((2**33, 1), 2**34), ((16, 2), 2**40)])
def test_extents_beyond_the_hardware(dims, stride):
    with pytest.raises(KernelError, match="at most 4294967296 elements"):
        tiled_map(TensorMap(0, "u8", dims, (16, 1), (stride,)), 0, 2**60)
