"""Latent attention: absorbed and expanded are one, and what is cached is the latent."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bedstone.graph.step import Attention, HLinear, StepGraph
from bedstone.models import step_graph
from tiny_models import IDS, Cached, Loaded, load, write_tiny

NAMES = ("deepseek-v2", "deepseek-v2-groups", "deepseek-v3", "deepseek-v3-halves")


@pytest.fixture(scope="module", params=NAMES)
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Loaded, list[tuple[np.ndarray, np.ndarray]]]:
    """The model, and the latents and turned keys [rows, width] that transformers caches a layer."""
    folder: Path = tmp_path_factory.mktemp("latent")
    model = write_tiny(request.param, folder)
    with torch.no_grad():
        cache = model(torch.tensor([IDS]), use_cache=True).past_key_values
    rows = [(layer.keys[0, 0].numpy(), layer.values[0, 0].numpy()) for layer in cache.layers]
    return load(str(folder)), rows


@pytest.fixture
def latent(written) -> Loaded:
    return written[0]


def graph(loaded: Loaded, form: str, rows: int) -> StepGraph:
    return step_graph(loaded.config, form, formats=loaded.formats, rows=rows, capacity=16)


def attentions(step: StepGraph) -> Iterator[Attention]:
    return (op for op in step.ops if isinstance(op, Attention))


def test_absorbed_and_expanded_agree(latent: Loaded) -> None:
    absorbed, expanded = Cached(), Cached()
    stepped = latent.decode(IDS, absorbed)
    ours = np.concatenate([latent.chunks([token], [1], expanded) for token in IDS])
    assert np.abs(ours - stepped).max() < 1e-10 * np.abs(stepped).max()
    for name, table in absorbed.tables.items():
        np.testing.assert_allclose(expanded.tables[name], table, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("form", "rows"), [("decode", 1), ("batch", 3)])
def test_a_step_of_one_row_attends_to_the_cached_rows_themselves(
    latent: Loaded, form: str, rows: int
) -> None:
    step, sizes, heads = graph(latent, form, rows), latent.config.latent, latent.config.heads
    for op in attentions(step):
        assert op.k == op.v
        assert (op.groups, op.dk, op.dv) == (1, sizes.kv_rank + sizes.turned, sizes.kv_rank)
    products = [op for op in step.ops if isinstance(op, HLinear)]
    assert len(products) == 2 * latent.config.layers
    assert all(step.values[op.out].rows == rows for op in products)
    assert step.consts["model.layers.0.self_attn.kv_b_proj.key.weight"].shape == (
        heads,
        sizes.own,
        sizes.kv_rank,
    )
    assert "model.layers.0.self_attn.kv_b_proj.weight" not in step.consts


def test_a_chunk_makes_keys_and_values_of_the_cached_rows(latent: Loaded) -> None:
    step, sizes, config = graph(latent, "chunk", 4), latent.config.latent, latent.config
    for op in attentions(step):
        assert (op.groups, op.dk, op.dv) == (config.heads, config.head_dim, sizes.value_dim)
    assert not any(isinstance(op, HLinear) for op in step.ops)
    assert not any(name.endswith("kv_b_proj.key.weight") for name in step.consts)


def test_the_cached_rows_are_those_of_transformers(written) -> None:
    """They keep the two of a pair apart, first halves first, where pairs turn as neighbours."""
    latent, theirs = written
    cached, sizes = Cached(), latent.config.latent
    latent.chunks(IDS, [5, 7], cached)
    for layer, (c, turned) in enumerate(theirs):
        rows = cached.tables[f"c.{layer}"][: len(IDS)]
        ours = rows[:, sizes.kv_rank :]
        if latent.config.rope.kind == "pair" and latent.config.mixture.score == "sigmoid":
            ours = np.concatenate([ours[:, ::2], ours[:, 1::2]], axis=1)
        np.testing.assert_allclose(rows[:, : sizes.kv_rank], c, rtol=0, atol=1e-4)
        np.testing.assert_allclose(ours, turned, rtol=0, atol=1e-4)


def decoded_otherwise(loaded: Loaded, **changes: object) -> float:
    """How far the logits of a changed config lie from the right ones, relative to the largest."""
    expected = loaded.decode(IDS, Cached())
    ours = replace(loaded, config=replace(loaded.config, **changes)).decode(IDS, Cached())
    return float(np.abs(ours - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("written", ["deepseek-v2-groups", "deepseek-v3"], indirect=True)
def test_c04_scores_left_unstretched_would_be_seen(latent: Loaded) -> None:
    plain = latent.config.head_dim**-0.5
    assert latent.config.attention_scale > plain
    assert decoded_otherwise(latent, attention_scale=plain) > 1e-3


@pytest.mark.parametrize("written", ["deepseek-v3", "deepseek-v3-halves"], indirect=True)
def test_experts_chosen_without_their_bias_would_be_seen(latent: Loaded) -> None:
    assert decoded_otherwise(latent, mixture=replace(latent.config.mixture, bias=False)) > 1e-3


@pytest.mark.parametrize("written", ["deepseek-v2-groups", "deepseek-v3"], indirect=True)
def test_experts_chosen_of_all_groups_would_be_seen(latent: Loaded) -> None:
    free = replace(latent.config.mixture, groups=1, group_k=1, group_best=1)
    assert decoded_otherwise(latent, mixture=free) > 1e-3


def test_the_first_layers_are_dense(latent: Loaded) -> None:
    config = latent.config
    made = {op.out for op in graph(latent, "decode", 1).ops}
    for layer in range(config.layers):
        assert (f"l{layer}.router" in made) == (layer in config.mixture.layers)
