"""Copies in pieces: the same bytes go to the same places, and none is long."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bedstone.runtime.cuda.transfer import plan_copies
from bedstone.runtime.device import RowCopy


def places(copy):
    """From where each byte comes, by where it goes."""
    rows, columns = np.arange(copy.rows)[:, None], np.arange(copy.width)
    source = copy.source + rows * copy.source_pitch + columns
    target = copy.target + rows * copy.target_pitch + columns
    return dict(zip(target.ravel().tolist(), source.ravel().tolist(), strict=True))


@given(
    st.integers(1, 9),
    st.integers(1, 30),
    st.integers(0, 5),
    st.integers(0, 5),
    st.integers(1, 40),
)
def test_pieces_are_the_copy(rows, width, gap, other, most):
    copy = RowCopy(1000, width + gap, 5000, width + other, rows, width)
    pieces = list(plan_copies([copy], most))
    found = {}
    for piece in pieces:
        assert piece.rows * piece.width <= most
        assert piece.rows == 1 or not piece.whole
        assert not found.keys() & places(piece).keys()
        found |= places(piece)
    assert found == places(copy)


def test_few_long_copies_are_made_of_a_run():
    copy = RowCopy(0, 64, 10**6, 64, 100, 64)
    assert [piece.width for piece in plan_copies([copy], 4096)] == [4096, 2304]
    assert list(plan_copies([], 8)) == []
