"""What a mixture of experts and Gemma 3 write, and that what their configs say counts."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bedstone.checkpoint.config import MixtureConfig, ModelConfig, RopeConfig
from bedstone.graph.step import Attention, Rope, Scale, StepGraph, TopK
from bedstone.models import step_graph
from bedstone.models.gemma3 import embedding_scale
from tiny_models import Cached

CONFIG = ModelConfig(
    architecture="Qwen2MoeForCausalLM",
    name="tiny",
    vocab=32,
    hidden=16,
    layers=2,
    heads=4,
    kv_heads=2,
    head_dim=8,
    intermediate=24,
    context=128,
    norm_eps=1e-6,
    rope=RopeConfig("neox", 8, 1e4, "default", (1.0, 0.1, 0.01, 0.001)),
    activation="silu",
    tie_embeddings=True,
    attention_bias=False,
    attention_out_bias=False,
    mlp_bias=False,
    qk_norm=False,
    attention_scale=8**-0.5,
    sliding_window=None,
    bos=None,
    eos=(),
    mixture=MixtureConfig(6, 2, 12, (1,), "softmax", normalise=True, shared=20, shared_gate=True),
)
GEMMA = replace(
    CONFIG,
    architecture="Gemma3ForCausalLM",
    mixture=None,
    qk_norm=True,
    norm_plus_one=True,
    sandwich_norms=True,
    sliding_window=3,
    layer_kinds=("sliding", "full"),
    local_rope=RopeConfig("neox", 8, 1e2, "default", (1.0, 0.2, 0.02, 0.002)),
    logit_cap=30.0,
)


def graph(config: ModelConfig, held: str = "f32") -> StepGraph:
    formats = defaultdict(lambda: held)
    return step_graph(config, "decode", formats=formats, rows=1, capacity=16)


def names(graph: StepGraph, start: str, end: str) -> list[str]:
    found = [op.out for op in graph.ops]
    return found[found.index(start) + 1 : found.index(end)]


ROUTE = ["l1.router", "l1.score", "l1.ids", "l1.weights"]
EXPERTS = ["l1.xgate", "l1.xup", "l1.xact", "l1.xglu", "l1.xdown", "l1.mixed"]
NETWORK = ["l1.gate", "l1.up", "l1.act", "l1.glu", "l1.down"]


def test_a_mixture_by_its_names() -> None:
    shared = [*NETWORK, "l1.sgate", "l1.share", "l1.shared", "l1.y"]
    assert names(graph(CONFIG), "l1.m", "x.2") == ROUTE + EXPERTS + shared
    assert names(graph(CONFIG), "l0.m", "x.1") == [name.replace("l1", "l0") for name in NETWORK]


def test_a_shared_network_may_have_no_gate_or_be_missing() -> None:
    ungated = replace(CONFIG, mixture=replace(CONFIG.mixture, shared_gate=False))
    assert names(graph(ungated), "l1.m", "x.2") == [*ROUTE, *EXPERTS, *NETWORK, "l1.y"]
    assert "model.layers.1.mlp.shared_experts.up_proj.weight" in graph(ungated).consts
    alone = replace(CONFIG, mixture=replace(CONFIG.mixture, shared=0, shared_gate=False))
    assert names(graph(alone), "l1.m", "x.2") == ROUTE + EXPERTS


def test_experts_are_chosen_as_the_config_says() -> None:
    sizes = replace(
        CONFIG.mixture, score="sigmoid", bias=True, groups=3, group_k=2, group_best=2, factor=2.5
    )
    made = {op.out: op for op in graph(replace(CONFIG, mixture=sizes)).ops}
    bias = "model.layers.1.mlp.gate.e_score_correction_bias"
    assert made["l1.ids"] == TopK("l1.score", "l1.ids", 2, bias, 3, 2, 2)
    assert (made["l1.score"].fn, made["l1.weights"].factor) == ("sigmoid", 2.5)
    assert made["l1.weights"].x == "l1.score"


def test_gemma_by_its_names() -> None:
    made = graph(GEMMA)
    assert names(made, "embedded", "l0.n") == ["x.0"]
    assert names(made, "l0.o", "l0.h") == ["l0.on"]
    assert names(made, "l0.down", "x.1") == ["l0.fn"]
    assert names(made, "final", "next") == ["uncapped", "logits"]


def test_each_kind_of_layer_has_its_window_and_rotation() -> None:
    made = graph(GEMMA)
    assert [op.window for op in made.ops if isinstance(op, Attention)] == [3, None]
    assert [op.rope for op in made.ops if isinstance(op, Rope)] == ["rope.local"] * 2 + ["rope"] * 2
    assert made.ropes["rope.local"].inv_freq == GEMMA.local_rope.inv_freq


@pytest.mark.parametrize(("hidden", "scale"), [(3072, 55.5), (2048, 45.25), (2560, 50.5)])
def test_c15_the_embedding_scale_is_rounded_as_the_model_is_held(hidden: int, scale: float) -> None:
    config = replace(GEMMA, hidden=hidden)
    scales = [op.by for op in graph(config, "bf16").ops if isinstance(op, Scale)]
    assert scales == [scale]
    assert embedding_scale(hidden, "f32") == float(np.float32(hidden**0.5))


def test_c15_a_scale_is_rounded_to_half_precision_too() -> None:
    assert embedding_scale(3072, "f16") == 55.4375
    assert embedding_scale(3072, "q8_0") == pytest.approx(3072**0.5, rel=1e-7)


@pytest.mark.parametrize("tiny", ["gemma3"], indirect=True)
@pytest.mark.parametrize(
    "change",
    [
        {"local_rope": None},
        {"norm_plus_one": False},
        {"sliding_window": 5},
        {"layer_kinds": ("sliding", "full", "sliding")},
        {"attention_scale": 16**-0.5},
    ],
)
def test_what_gemma_says_would_be_missed(tiny, change: dict[str, Any]) -> None:
    config = replace(tiny.loaded.config, **change)
    ours = replace(tiny.loaded, config=config).decode(tiny.ids, Cached())
    assert np.abs(ours - tiny.theirs).max() > 1e-3 * np.abs(tiny.theirs).max()


@pytest.mark.parametrize("tiny", ["qwen2-moe", "qwen3-moe"], indirect=True)
@pytest.mark.parametrize(
    "change",
    [
        {"chosen": 1},
        {"chosen": 3},
        {"score": "sigmoid"},
        {"factor": 1.5},
    ],
)
def test_what_a_mixture_says_would_be_missed(tiny, change: dict[str, Any]) -> None:
    config = tiny.loaded.config
    mixture = replace(config.mixture, **change)
    ours = replace(tiny.loaded, config=replace(config, mixture=mixture)).decode(tiny.ids, Cached())
    assert np.abs(ours - tiny.theirs).max() > 1e-3 * np.abs(tiny.theirs).max()


@pytest.mark.parametrize("tiny", ["qwen2-moe", "qwen2-moe-normed"], indirect=True)
def test_weights_made_to_sum_to_one_would_be_missed(tiny) -> None:
    config = tiny.loaded.config
    other = replace(config.mixture, normalise=not config.mixture.normalise)
    ours = replace(tiny.loaded, config=replace(config, mixture=other)).decode(tiny.ids, Cached())
    assert np.abs(ours - tiny.theirs).max() > 1e-3 * np.abs(tiny.theirs).max()
