"""What a family writes: names, order, what is refused."""

from collections import defaultdict
from dataclasses import replace
from itertools import chain

import pytest

from bedstone.checkpoint.config import ModelConfig, RopeConfig
from bedstone.errors import CallerError, WeightError
from bedstone.graph.step import AtParam, Fixed, Row, StepGraph
from bedstone.graph.text import emit_op
from bedstone.models import FAMILIES, step_graph

CONFIG = ModelConfig(
    architecture="Qwen3ForCausalLM",
    name="tiny",
    vocab=32,
    hidden=16,
    layers=1,
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
    qk_norm=True,
    attention_scale=8**-0.5,
    sliding_window=None,
    bos=None,
    eos=(),
)
F32: defaultdict[str, str] = defaultdict(lambda: "f32")


def graph(config: ModelConfig = CONFIG, form: str = "decode", rows: int = 1, **more) -> StepGraph:
    return step_graph(config, form, formats=F32, rows=rows, capacity=16, **more)


def names(graph: StepGraph) -> list[str]:
    return [op.out for op in graph.ops]


HEAD = ["final", "logits", "next"]
FEED_FORWARD = ["l0.h", "l0.m", "l0.gate", "l0.up", "l0.act", "l0.glu", "l0.down", "x.1"]


def test_a_decode_step_by_its_names() -> None:
    attention = ["l0.q", "l0.k", "l0.v", "l0.qn", "l0.qr", "l0.kn", "l0.kr"]
    attention += ["k.0@1", "v.0@1", "l0.a", "l0.o"]
    assert names(graph()) == ["x.0", "l0.n", *attention, *FEED_FORWARD, *HEAD]
    assert graph().params == ("pos",)
    assert graph().outputs == ("logits", "next")


def test_llama_norms_no_heads() -> None:
    llama = graph(replace(CONFIG, architecture="LlamaForCausalLM", qk_norm=False))
    assert set(names(graph())) - set(names(llama)) == {"l0.qn", "l0.kn"}


def test_a_batch_step_by_its_names() -> None:
    own = [
        [f"l0.{r}.{i}" for r in ("q", "k", "v", "qn", "qr", "kn", "kr")]
        + [f"k.0.{i}@1", f"v.0.{i}@1", f"l0.a.{i}", f"l0.rows@{i + 1}"]
        for i in range(2)
    ]
    batch = graph(form="batch", rows=2)
    projected = ["x.0", "l0.n", "l0.q", "l0.k", "l0.v"]
    assert names(batch) == [*projected, *chain(*own), "l0.o", *FEED_FORWARD, *HEAD]
    assert batch.params == ("pos.0", "pos.1")
    assert {t.name for t in batch.tables.values() if not t.scratch} == {
        "k.0.0",
        "v.0.0",
        "k.0.1",
        "v.0.1",
    }


def test_a_chunk_heads_its_last_row_only() -> None:
    exact, variable = graph(form="chunk", rows=4), graph(form="chunk", rows=4, row_param="n")
    assert Row("x.1", "last", Fixed(3)) in exact.ops
    assert Row("x.1", "last", AtParam("n")) in variable.ops
    assert exact.values["logits"].rows == variable.values["logits"].rows == 1
    assert list(exact.carried) == ["prompt"]


def test_biases_are_ops_of_their_own() -> None:
    biased = replace(CONFIG, attention_bias=True, attention_out_bias=True, mlp_bias=True)
    lines = [emit_op(op) for op in graph(biased).ops]
    added = [line for line in lines if ".bias)" in line]
    assert added[0] == "l0.q.b = add(a=l0.q, b=model.layers.0.self_attn.q_proj.bias)"
    assert len(added) == 7


def test_a_constant_keeps_the_format_of_the_checkpoint() -> None:
    formats = defaultdict(lambda: "bf16", {"model.layers.0.mlp.up_proj.weight": "f16"})
    consts = step_graph(CONFIG, "decode", formats=formats, rows=1, capacity=4).consts
    assert consts["model.layers.0.mlp.up_proj.weight"].format == "f16"
    assert consts["model.norm.weight"].format == "bf16"


def test_an_unknown_architecture_is_named_with_the_known_ones() -> None:
    with pytest.raises(WeightError, match="`tiny` is of architecture `MambaForCausalLM`") as error:
        graph(replace(CONFIG, architecture="MambaForCausalLM"))
    assert all(f"`{name}`" in str(error.value) for name in FAMILIES)


def test_a_constant_the_checkpoint_lacks_is_named() -> None:
    with pytest.raises(WeightError, match=r"`tiny` has no tensor `model\.embed_tokens\.weight`"):
        step_graph(CONFIG, "decode", formats={}, rows=1, capacity=4)


@pytest.mark.parametrize(
    ("form", "rows", "row_param", "message"),
    [
        ("chunk", 17, None, "a chunk step of 17 rows does not fit a capacity of 16"),
        ("chunk", 0, None, "a chunk step of 0 rows"),
        ("decode", 2, None, "a decode step takes one row, not 2"),
        ("batch", 2, "n", "only a chunk has variable rows, not a batch step"),
        ("prefill", 2, None, "form `prefill` is none of"),
    ],
)
def test_sizes_that_make_no_step_are_refused(
    form: str, rows: int, row_param: str | None, message: str
) -> None:
    with pytest.raises(CallerError, match=message):
        graph(form=form, rows=rows, row_param=row_param)
