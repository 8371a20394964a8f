"""Each family's steps against `transformers`, whatever way the rows are cut into steps."""

from collections import Counter
from dataclasses import replace
from math import prod

import numpy as np
import pytest

from bedstone.checkpoint.constants import constants
from bedstone.checkpoint.names import expected_tensors
from bedstone.models import step_graph
from tiny_models import Cached


def distance(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference, relative to the largest value."""
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def test_decode_agrees_at_every_position(tiny) -> None:
    ours = tiny.loaded.decode(tiny.ids, Cached())
    assert distance(ours, tiny.theirs) < 1e-5


def test_decode_agrees_in_float32(tiny) -> None:
    ours = replace(tiny.loaded, dtype=np.float32).decode(tiny.ids, Cached())
    assert ours.dtype == np.float32
    assert distance(ours, tiny.theirs) < 1e-4


def test_a_chunk_then_decode_agrees(tiny) -> None:
    cached = Cached()
    last = tiny.loaded.chunks(tiny.ids[:7], [7], cached)
    rest = tiny.loaded.decode(tiny.ids[7:], cached)
    assert distance(np.concatenate([last, rest]), tiny.theirs[6:]) < 1e-5


@pytest.mark.parametrize("row_param", [None, "rows"])
@pytest.mark.parametrize("sizes", [[5, 7], [1, 8, 3], [4, 4, 4]])
def test_any_chunking_agrees_with_decode(tiny, sizes: list[int], row_param: str | None) -> None:
    one_by_one, chunked = Cached(), Cached()
    stepped = tiny.loaded.decode(tiny.ids, one_by_one)
    ends = np.cumsum(sizes) - 1
    ours = replace(tiny.loaded, row_param=row_param).chunks(tiny.ids, sizes, chunked)
    assert distance(ours, stepped[ends]) < 1e-12
    assert chunked.tables.keys() == one_by_one.tables.keys()
    for name, table in chunked.tables.items():
        np.testing.assert_allclose(table, one_by_one.tables[name], rtol=0, atol=1e-12)


def test_a_batch_is_its_sequences(tiny) -> None:
    """Sequences at different lengths, beyond a window and within it."""
    loaded, starts, steps = tiny.loaded, (6, 1, 9), 3
    alone, batched = [], {}
    for i, start in enumerate(starts):
        cached = Cached()
        loaded.chunks(tiny.ids[-start:], [start], cached)
        batched |= {f"{name}.{i}": table.copy() for name, table in cached.tables.items()}
        alone.append(loaded.decode(tiny.ids[i : i + steps], cached))
    oracle = loaded.oracle("batch", 3, batched)
    for step in range(steps):
        token = [tiny.ids[i + step] for i in range(3)]
        pos = {f"pos.{i}": start + step + 1 for i, start in enumerate(starts)}
        out = oracle.run({"token": token}, pos)
        expected = np.stack([logits[step] for logits in alone])
        assert distance(out["logits"], expected) < 1e-12
        assert out["next"][:, 0].tolist() == expected.argmax(axis=1).tolist()


@pytest.mark.parametrize("form", ["decode", "chunk"])
def test_a_graph_reads_every_row_the_config_calls_for(tiny, form: str) -> None:
    config = tiny.loaded.config
    graph = step_graph(config, form, formats=tiny.loaded.formats, rows=1, capacity=16)
    known, read = constants(config), Counter()
    for const in graph.consts.values():
        assert const.shape == known[const.name].shape
        for window in known[const.name].windows:
            read[window.tensor] += window.rows
    assert read == {name: prod(s[:-1]) for name, s in expected_tensors(config).items()}


@pytest.mark.parametrize("tiny", ["mistral-window"], indirect=True)
def test_a_window_one_row_wider_would_be_seen(tiny) -> None:
    config = tiny.loaded.config
    wider = replace(config, sliding_window=config.sliding_window + 1)
    ours = replace(tiny.loaded, config=wider).decode(tiny.ids, Cached())
    beyond = config.sliding_window
    assert distance(ours[:beyond], tiny.theirs[:beyond]) < 1e-5
    assert distance(ours[beyond:], tiny.theirs[beyond:]) > 1e-3


@pytest.mark.parametrize("tiny", ["llama3-scaling"], indirect=True)
def test_frequencies_left_unscaled_would_be_seen(tiny) -> None:
    rope = tiny.loaded.config.rope
    plain = tuple(rope.theta ** (-2 * i / rope.rot) for i in range(rope.rot // 2))
    config = replace(tiny.loaded.config, rope=replace(rope, inv_freq=plain))
    ours = replace(tiny.loaded, config=config).decode(tiny.ids, Cached())
    assert distance(ours, tiny.theirs) > 1e-3
