"""finish: the tokens drawn for a step are written where the next one reads them."""

import numpy as np
import pytest

from kernels.harness import Library, poison

PAGE, WIDTH = 4, 3
OUTPUTS = ("next", "error", "token", "at", "to_slot")
PAGES = np.array([[2, 0, 1], [4, 3, 5], [7, 6, 8]], np.int32)


def ends(library: Library, entry: str, rows: int, given: dict, position: list[int]) -> dict:
    outs = {name: poison((1 if name == "error" else rows,), np.int32) for name in OUTPUTS}
    if not entry.endswith("_rows"):
        outs["run"] = np.full(PAGE * WIDTH, -5, np.int32)
    library.call(
        entry, **given, position=np.array(position, np.int32), pages=PAGES[:rows], **outs,
        rows=len(position), page=PAGE, pages_width=WIDTH,
    )  # fmt: skip
    return outs


@pytest.mark.parametrize("bad", [False, True])
@pytest.mark.parametrize(
    ("rows", "position"), [(1, [2, 3, 4]), (1, [11]), (1, [6]), (3, [5, 11, 0])]
)
def test_drawn_tokens_end_a_step_as_the_largest_do(
    library: Library, rows: int, position: list[int], *, bad: bool
) -> None:
    logits = np.random.default_rng(rows).standard_normal((rows, 50)).astype(np.float32)
    drawn = logits.argmax(axis=1).astype(np.int32)
    if bad:
        logits[-1, 2], drawn[-1] = np.nan, -1
    form = "" if rows == 1 else "_rows"
    closed = ends(library, f"finish{form}", rows, {"drawn": drawn}, position)
    largest = ends(library, f"argmax{form}", rows, {"logits": logits, "vocab": 50}, position)
    assert closed.keys() == largest.keys()
    for name, value in closed.items():
        assert value.tolist() == largest[name].tolist(), name
