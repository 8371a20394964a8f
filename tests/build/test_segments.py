"""Windows of tensors as segments of a bind."""

from pathlib import Path

import pytest

from bedstone.build.segments import segments
from bedstone.checkpoint.constants import Constant, Window
from bedstone.checkpoint.tensors import TensorInfo
from bedstone.spec.manifest import Segment


def tensor(shape: tuple[int, ...], held: str = "bf16") -> dict[str, TensorInfo]:
    return {"model.w": TensorInfo("own.w", held, shape, Path("w"), 0, 0)}


@pytest.mark.parametrize(
    ("shape", "window", "expected"),
    [
        ((6,), (0, 1), Segment("own.w")),
        ((8, 6), (0, 8), Segment("own.w")),
        ((8, 6), (3, 2), Segment("own.w", rows=(3, 5))),
        ((4, 10, 6), (0, 40), Segment("own.w")),
        ((4, 10, 6), (10, 20), Segment("own.w", rows=(1, 3))),
        ((4, 10, 6), (25, 5), Segment("own.w", rows=(2, 3), cols=(30, 60))),
        ((12, 1, 4), (8, 4), Segment("own.w", rows=(8, 12))),
    ],
)
def test_a_window_is_rows_by_the_first_axis_or_columns_of_one(shape, window, expected):
    constant = Constant("w", (1,), (Window("model.w", *window),))
    assert segments(constant, tensor(shape)) == (expected,)


def test_columns_of_a_quantized_tensor_count_bytes():
    constant = Constant("w", (2, 5, 64), (Window("model.w", 5, 5), Window("model.w", 15, 5)))
    assert segments(constant, tensor((2, 10, 64), "q8_0")) == (
        Segment("own.w", rows=(0, 1), cols=(5 * 68, 10 * 68)),
        Segment("own.w", rows=(1, 2), cols=(5 * 68, 10 * 68)),
    )
