"""Hybrids: what a recurrent layer writes, and that the state it carries is the one it should."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bedstone.graph.step import Conv, Delta, Mul, Norm, Part, Set, StepGraph
from bedstone.models import step_graph
from tiny_models import IDS, Cached, Loaded, load, write_tiny


@dataclass(frozen=True)
class Hybrid:
    """`rings` [channels, rows] and `states` [heads, dk, dv] are transformers' own, by layer."""

    loaded: Loaded
    rings: dict[int, np.ndarray]
    states: dict[int, np.ndarray]


@pytest.fixture(scope="module", params=["qwen3-next", "qwen3.5-wide-taps"])
def hybrid(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Hybrid:
    folder: Path = tmp_path_factory.mktemp("hybrid")
    model = write_tiny(request.param, folder)
    loaded = load(str(folder))
    with torch.no_grad():
        cache = model(torch.tensor([IDS]), use_cache=True).past_key_values
    kinds = loaded.config.layer_kinds
    layers = [layer for layer, kind in enumerate(kinds) if kind == "recurrent"]
    rings = {layer: cache.get_conv_state(layer, state_idx=0)[0].numpy() for layer in layers}
    states = {layer: cache.get_recurrent_state(layer, state_idx=0)[0].numpy() for layer in layers}
    return Hybrid(loaded, rings, states)


@pytest.mark.parametrize("sizes", [[12], [1, 4, 7], [5, 1, 1, 5]])
def test_the_state_after_all_rows_is_that_of_transformers(hybrid: Hybrid, sizes: list[int]) -> None:
    cached, recurrent = Cached(), hybrid.loaded.config.recurrent
    hybrid.loaded.chunks(IDS, sizes, cached)
    for layer, theirs in hybrid.states.items():
        ours = cached.tables[f"state.{layer}"].reshape(theirs.shape)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * np.abs(theirs).max())
        ring = np.concatenate([cached.tables[f"ring.{role}.{layer}"] for role in "qkv"], axis=1)
        last = hybrid.rings[layer][:, 1 - recurrent.kernel :].T
        np.testing.assert_allclose(ring, last, rtol=0, atol=1e-5 * np.abs(last).max())


def test_a_state_that_is_not_carried_would_be_seen(hybrid: Hybrid) -> None:
    whole, cut = Cached(), Cached()
    expected = hybrid.loaded.chunks(IDS, [6, 6], whole)[1]
    hybrid.loaded.chunks(IDS[:6], [6], cut)
    for name in cut.tables:
        if name.startswith(("ring.", "state.")):
            forgotten = Cached({n: t.copy() for n, t in cut.tables.items()}, cut.length)
            forgotten.tables[name][:] = 0
            ours = hybrid.loaded.chunks(IDS[6:], [6], forgotten)[0]
            assert np.abs(ours - expected).max() > 1e-4 * np.abs(expected).max(), name


def graph(loaded: Loaded, form: str, rows: int) -> StepGraph:
    return step_graph(loaded.config, form, formats=loaded.formats, rows=rows, capacity=16)


@pytest.mark.parametrize(("form", "rows"), [("decode", 1), ("chunk", 4), ("batch", 3)])
def test_convolutions_read_parts_of_one_product(hybrid: Hybrid, form: str, rows: int) -> None:
    step = graph(hybrid.loaded, form, rows)
    product = "l0.qkvz" if hybrid.loaded.config.recurrent.packed else "l0.qkv"
    parts = {op.out: op.x for op in step.ops if isinstance(op, Part)}
    assert [parts[f"l0.{role}"] for role in "qkv"] == [product] * 3


def test_each_sequence_of_a_batch_carries_its_own(hybrid: Hybrid) -> None:
    step, config = graph(hybrid.loaded, "batch", 3), hybrid.loaded.config
    recurrent = config.layer_kinds.count("recurrent")
    kinds = Counter(type(op) for op in step.ops)
    assert kinds[Delta] == 3 * recurrent
    assert kinds[Conv] == 9 * recurrent
    zeros = {name for name, table in step.tables.items() if table.zeros}
    assert zeros == {
        f"{name}.{layer}.{i}"
        for layer, kind in enumerate(config.layer_kinds)
        if kind == "recurrent"
        for i in range(3)
        for name in ("ring.q", "ring.k", "ring.v", "state")
    }


def test_gates_weigh_all_rows_of_a_batch_at_once(hybrid: Hybrid) -> None:
    step = graph(hybrid.loaded, "batch", 3)
    layer = hybrid.loaded.config.layer_kinds.index("full")
    gated = next(op for op in step.ops if op.out == f"l{layer}.gated")
    assert gated == Mul(f"l{layer}.rows@3", f"l{layer}.qs", f"l{layer}.gated")
    assert step.values[gated.out].rows == 3


def test_a_gated_norm_is_plain_where_the_others_add_one(hybrid: Hybrid) -> None:
    norms = [op for op in graph(hybrid.loaded, "decode", 1).ops if isinstance(op, Norm)]
    plain = {op.out for op in norms if not op.plus_one}
    kinds = hybrid.loaded.config.layer_kinds
    assert plain == {f"l{i}.un" for i, kind in enumerate(kinds) if kind == "recurrent"}


def test_norms_without_their_one_would_be_seen(hybrid: Hybrid) -> None:
    config = replace(hybrid.loaded.config, norm_plus_one=False)
    ours = replace(hybrid.loaded, config=config).decode(IDS, Cached())
    expected = hybrid.loaded.decode(IDS, Cached())
    assert np.abs(ours - expected).max() > 1e-2 * np.abs(expected).max()


def test_only_layers_that_attend_cache_rows(hybrid: Hybrid) -> None:
    step = graph(hybrid.loaded, "decode", 1)
    written = {op.table for op in step.ops if isinstance(op, Set)}
    kinds = hybrid.loaded.config.layer_kinds
    assert written == {f"{r}.{i}" for i, kind in enumerate(kinds) if kind == "full" for r in "kv"}
