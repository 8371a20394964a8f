"""Edits of rows, changed of all at once, are those of each sequence on its own."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bedstone.runtime.device import Memory, Places
from bedstone.runtime.edits import Edits
from bedstone.runtime.ports import Input, Port
from bedstone.serve.engine.edited import Edited
from bedstone.serve.engine.kept import Changed
from bedstone.spec.sampling import Knobs, Sampling

ROWS, MOST = 4, 12
KNOBS = Knobs(*(each for each in Knobs.__struct_fields__))
SAMPLINGS = st.sampled_from(
    [
        Sampling(presence=0.5),
        Sampling(frequency=0.3, repetition=1.5),
        Sampling(repetition=0.7, bias={1: 2.0, 5: -1.25}),
        Sampling(presence=0.1, frequency=0.7, bias={0: 0.3}),
    ]
)
ACTS = st.lists(
    st.tuples(
        st.sampled_from(["seat", "none", "move", "lend", "make", "make"]),
        st.integers(0, ROWS - 1),
        st.integers(0, ROWS - 1),
        SAMPLINGS,
        st.lists(st.integers(0, MOST - 4), min_size=ROWS, max_size=ROWS),
    ),
    max_size=25,
)


class Held:
    """Inputs, and what a device has of them."""

    def __init__(self) -> None:
        self.of: dict[str, np.ndarray] = {}

    def take(self, name: str) -> Input:
        shape = (ROWS,) if name == KNOBS.edits else (ROWS, MOST)
        real = np.dtype(np.float32 if name in {KNOBS.edit_scale, KNOBS.edit_add} else np.int32)
        held = self.of.setdefault(name, np.full(shape, 77, real))

        def copy(offset: int, data: np.ndarray) -> None:
            held.reshape(-1).view(np.uint8)[offset : offset + data.size] = data

        def scatter(places: Places, width: int, data: np.ndarray) -> None:
            rows, columns = np.divmod(places.flat, width)
            assert (rows.min(), rows.max()) == (places.top, places.bottom)
            assert (columns.min(), columns.max()) == (places.left, places.right)
            held.reshape(-1)[places.flat] = data

        port = Port("input", Memory(0, held.nbytes, None), real, shape, None, None)
        return Input(name, port, None, copy, scatter)

    def row(self, row: int) -> list[tuple[float, ...]]:
        names = (KNOBS.edit_token, KNOBS.edit_scale, KNOBS.edit_add)
        count = self.of[KNOBS.edits][row]
        return list(zip(*(self.of[name][row, :count].tolist() for name in names), strict=True))


def of(edits: Edits | None) -> list[tuple[float, ...]]:
    """What the device is to have of a sequence."""
    if edits is None:
        return []
    columns = (edits.tokens, edits.scales, edits.adds)
    return list(zip(*(each[: edits.count].tolist() for each in columns), strict=True))


def edits_of(sampling: Sampling, prompt: list[int], made: list[int]) -> Edits:
    edits = Edits(sampling, MOST)
    for token in prompt:
        edits.read(token)
    for token in made:
        edits.make(token)
    return edits


@given(ACTS)
def test_rows_that_make_tokens_have_the_edits_of_each_alone(acts):
    held, changed = Held(), Changed()
    inputs: dict[str, Input] = {}
    edited = Edited(KNOBS, lambda name: inputs.setdefault(name, held.take(name)), changed)
    rows: list[Edits | None] = [None] * ROWS
    for row in range(ROWS):
        edited.set(row, None)
    for act, row, other, sampling, tokens in acts:
        if act == "seat":
            edited.set(row, edits_of(sampling, tokens[:2], tokens[2:]))
            rows[row] = edits_of(sampling, tokens[:2], tokens[2:])
        elif act == "none":
            edited.set(row, None)
            rows[row] = None
        elif act == "move" and row != other:
            # who leaves is looked at no more
            edited.move(other, row)
            edited.set(other, None)
            rows[row], rows[other] = rows[other], None
        elif act == "lend":
            lent = edits_of(sampling, tokens, tokens)
            edited.lend(lent)
            assert held.row(0) == of(lent)
        elif act == "make":
            changed.flush(ROWS)
            edited.make(np.array(tokens, np.int32), tokens)
            for each, token in zip(rows, tokens, strict=True):
                if each is not None:
                    each.make(token)
        changed.flush(ROWS)
        assert [held.row(at) for at in range(ROWS)] == [of(each) for each in rows]


def test_rows_of_nobody_make_nothing():
    held, inputs = Held(), {}
    changed = Changed()
    edited = Edited(KNOBS, lambda name: inputs.setdefault(name, held.take(name)), changed)
    for row in range(ROWS):
        edited.set(row, edits_of(Sampling(presence=1.0), [], [3]))
    edited.make(np.array([4, 4], np.int32), [4, 4])
    changed.flush(ROWS)
    assert [len(held.row(row)) for row in range(ROWS)] == [2, 2, 1, 1]
