"""`plan` as a whole: what it makes of real shapes, that it repeats itself, and what it refuses."""

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from bedstone.checkpoint.config import ModelConfig
from bedstone.errors import CallerError, TargetError
from bedstone.graph.parse import parse
from bedstone.lane.census import census
from bedstone.lane.errors import OpError
from bedstone.lane.facts import Knobs
from bedstone.lane.launch import ArgMax, Attention, Rope
from bedstone.lane.plan import RULES, plan
from bedstone.lane.sizing import attended_span, split_count
from bedstone.models import step_graph
from lane_graphs import (
    CPU,
    LLAMA,
    LLAMA_1B,
    QWEN3,
    QWEN3_4B,
    AnyShim,
    Formats,
    graph_of,
    kinds,
    lowered,
    without,
)
from lane_zoo import SHALLOW

DECODE = {
    "embed": 1, "norm": 1, "add_norm": 2, "gemv_parts": 1, "rope_parts": 1, "attention": 1,
    "gemv": 2, "glu": 1, "argmax": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("model", "fused", "unfused", "apart"),
    [(LLAMA_1B, 132, 292, 197), (QWEN3_4B, 292, 724, 437)],
    ids=["llama-3.2-1b", "qwen3-4b"],
)
def test_launches_of_a_decode_step(
    model: ModelConfig, fused: int, unfused: int, apart: int
) -> None:
    """Eight a layer and four: the counts of the fused, unfused and quantized-apart step."""
    graph = graph_of(model, "decode", "q4_0", capacity=4096)
    schedule = lowered(graph, "quantized")
    per_layer = {k: n * model.layers for k, n in DECODE.items() if k not in {"embed", "argmax"}}
    ends = {"embed": 1, "argmax": 1, "norm": 1, "gemv": per_layer["gemv"] + 1}
    assert kinds(schedule) == per_layer | ends
    assert len(schedule.steps) == fused
    assert not schedule.misses
    assert len(lowered(graph, held=RULES).steps) == unfused
    assert len(lowered(graph, "quantized", knobs=Knobs(fuse_quant=False)).steps) == apart


def test_launches_of_the_other_forms() -> None:
    """A chunk's products stay apart above eight rows; a batch runs its sequences together."""
    model, formats = LLAMA_1B, graph_of(LLAMA_1B, "decode", "q4_0", capacity=512)
    chunk = step_graph(
        model,
        "chunk",
        formats={name: const.format for name, const in formats.consts.items()},
        rows=512,
        capacity=512,
        row_param="tokens",
    )
    assert len(lowered(chunk, "quantized").steps) == 10 * model.layers + 5
    batch = graph_of(model, "batch", "q4_0", capacity=512)
    together, apart = (lowered(batch, "quantized", held=h) for h in ((), ("sequences",)))
    assert kinds(together)["attention"] == model.layers
    assert kinds(apart)["attention"] == 3 * model.layers
    assert len(together.steps) == 8 * model.layers + 4
    assert len(apart.steps) == (8 + 2 * (3 - 1)) * model.layers + 4


def test_a_census_counts_every_launch() -> None:
    schedule = lowered(graph_of(QWEN3, "chunk"), held=("glu", "rope_parts"))
    counts = census(schedule)
    assert sum(counts.values()) == len(schedule.steps)
    assert {"rope", "silu", "mul", "take_row"} <= counts.keys()


@pytest.mark.parametrize("form", ["decode", "chunk", "batch"])
@pytest.mark.parametrize("family", SHALLOW)
def test_the_same_graph_gives_the_same_schedule(family: str, form: str) -> None:
    graph = graph_of(SHALLOW[family], form)
    first, again = lowered(graph, "quantized"), lowered(graph, "quantized")
    assert repr(first) == repr(again)
    shuffled = replace(
        graph,
        consts=dict(reversed(graph.consts.items())),
        tables=dict(reversed(graph.tables.items())),
        values=dict(reversed(graph.values.items())),
    )
    other = lowered(shuffled, "quantized")
    assert repr(other.steps) == repr(first.steps)
    assert repr(other.buffers) == repr(first.buffers)
    assert other.fusions == first.fusions


def test_no_hash_of_a_run_gets_into_a_schedule() -> None:
    """Sets of names come in another order in each process; schedules do not."""
    program = (
        "import hashlib\nfrom lane_graphs import graph_of, lowered\nfrom lane_zoo import SHALLOW\n"
        "steps = [(n, f) for n in ('qwen3-next', 'deepseek-v3') for f in ('decode', 'batch')]\n"
        "made = [lowered(graph_of(SHALLOW[n], f), 'quantized') for n, f in steps]\n"
        "print(hashlib.sha256(repr(made).encode()).hexdigest())"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("form", ["decode", "chunk", "batch"])
def test_a_lane_with_every_launch_takes_no_more_than_the_cpu(form: str) -> None:
    graph = graph_of(QWEN3, form)
    assert len(lowered(graph, shim=AnyShim()).steps) <= len(lowered(graph).steps)


def test_the_step_closes_by_advancing_each_sequence() -> None:
    last = lowered(graph_of(LLAMA, "batch")).steps[-1].launch
    assert isinstance(last, ArgMax)
    assert [(a.token, a.pos, a.item) for a in last.advances] == [
        ("token", "pos.0", 0),
        ("token", "pos.1", 1),
        ("token", "pos.2", 2),
    ]


@pytest.mark.parametrize("numerics", ["precise", "quantized"])
@pytest.mark.parametrize("model", [LLAMA, QWEN3])
def test_a_batch_of_one_sequence_takes_the_launches_of_a_decode_step(
    model: ModelConfig, numerics: str
) -> None:
    one = step_graph(model, "batch", formats=Formats("q8_0"), rows=1, capacity=32, row_param=None)
    schedule = lowered(one, numerics)
    assert kinds(schedule) == kinds(lowered(graph_of(model, "decode"), numerics))
    last = schedule.steps[-1].launch
    assert isinstance(last, ArgMax)
    assert [(a.token, a.pos, a.item) for a in last.advances] == [("token", "pos.0", 0)]


def test_a_chunk_seeds_the_decode_step() -> None:
    last = lowered(graph_of(LLAMA, "chunk")).steps[-1].launch
    assert isinstance(last, ArgMax)
    assert [(a.token, a.pos, a.item) for a in last.advances] == [("token", "pos", 0)]


def test_rows_that_a_param_counts_are_named() -> None:
    schedule = lowered(graph_of(LLAMA, "chunk"))
    turns = [step.launch for step in schedule.steps if isinstance(step.launch, Rope)]
    assert {schedule.row_count(launch.rows) for launch in turns} == {"tokens"}
    assert schedule.row_count(1) == 1


def test_a_span_is_the_cache_or_the_window() -> None:
    assert attended_span(4096, None) == 4096
    assert attended_span(4096, 512) == 512
    assert attended_span(256, 512) == 256


@pytest.mark.parametrize(
    ("span", "tiles", "splits"),
    [(4096, 8, 16), (4096, 64, 3), (4096, 132, 1), (512, 8, 2), (100, 8, 1)],
)
def test_pieces_fill_the_device_but_stay_long(span: int, tiles: int, splits: int) -> None:
    assert split_count(span, tiles, Knobs(target_blocks=132)) == splits


def test_a_lane_of_many_blocks_splits_an_attention() -> None:
    graph = graph_of(LLAMA, "decode", capacity=4096)
    schedule = lowered(graph, shim=AnyShim(), knobs=Knobs(target_blocks=16))
    splits = {s.launch.splits for s in schedule.steps if isinstance(s.launch, Attention)}
    assert splits == {8}


# --- what is refused --------------------------------------------------------------------------

REFUSED = {
    "a cache read by a product": (
        "c = row(x=K@1, at=fixed(row=0))",
        "op 2 (`c`): reads `K@1`, a carried table, which only an attention or a part may",
    ),
    "scratch written at a param": (
        "c = set(table=S, x=x, at=atparam(param=pos))",
        "op 2 (`c`): writes scratch `S` where `pos` says; its rows are literal",
    ),
    "scratch attended": (
        "c = attention(q=x, k=K@1, v=S, pos=pos, heads=1, groups=1, dk=64, dv=64, scale=1.0)",
        "op 2 (`c`): attends `S`, which is no carried table and made of none",
    ),
    "scratch read before it is written": (
        "c = row(x=S, at=fixed(row=3))",
        "op 2 (`c`): reads row 3 of scratch `S`, which nothing wrote",
    ),
    "part of a row of scratch written": (
        "c = set(table=S, x=x, at=fixed(row=0), column=0)",
        "op 2 (`c`): writes a part of a row of scratch `S`",
    ),
    "rows of a state written": (
        "c = set(table=Z, x=x, at=atparam(param=pos))",
        "op 2 (`c`): writes rows of `Z`, the state of a recurrence",
    ),
    "windows of a cache": (
        "c = part(x=K@1, pitch=32, offset=0, width=16, units=2)",
        "op 2 (`c`): takes 2 windows of each row of `K@1`, a carried table",
    ),
    "keys of a cache, values of a product": (
        "p = part(x=K@1, pitch=64, offset=0, width=64, units=1)\n"
        "c = attention(q=x, k=K@1, v=p, pos=pos, heads=1, groups=1, dk=64, dv=64, scale=1.0)",
        "op 3 (`c`): attends `K@1` and `p`, of which one is a carried table",
    ),
}

TEXT = """\
graph(model=t, form=decode, rows=1, params=({params}), outputs=(next,))
E = const(format=f32, shape=(96, 64))
K = table(capacity=8, width=64)
S = table(capacity=8, width=64, scratch=true)
Z = table(capacity=8, width=64, zeros=true)
token = carried(rows=1)
x = embed(ids=token, table=E)
{body}
logits = linear(x=x, w=E)
next = argmax(x=logits)
"""


@pytest.mark.parametrize(("body", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_no_lane_can_lower_is_refused_by_op(body: str, message: str) -> None:
    body = f"K@1 = set(table=K, x=x, at=atparam(param=pos))\n{body}"
    with pytest.raises(OpError) as refused:
        lowered(parse(TEXT.format(params="pos,", body=body)))
    assert str(refused.value) == message
    assert refused.value.name == "c"


def test_a_step_without_a_position_cannot_advance() -> None:
    with pytest.raises(CallerError, match=r"op 2 \(`next`\): advances `pos`, which is no param"):
        lowered(parse(TEXT.format(params="n,", body="")))


def test_an_op_without_a_launch_is_named() -> None:
    with pytest.raises(TargetError) as refused:
        lowered(graph_of(LLAMA, "decode"), shim=without("norm"))
    assert str(refused.value) == "op 1 (`l0.n`) has no launch: taken away"


def test_a_format_without_kernels_is_named() -> None:
    graph = graph_of(LLAMA, "decode")
    with pytest.raises(TargetError, match="no launch: taken away"):
        lowered(graph, shim=without("linear_q8_0", "parts3_q8_0_rows"))


def test_unknown_numerics_are_refused() -> None:
    numerics: Any = "fast"
    with pytest.raises(CallerError, match="`fast` is none of precise, quantized"):
        plan(graph_of(LLAMA, "decode"), numerics=numerics, shim=CPU)


def test_a_chunk_too_long_is_refused() -> None:
    graph = graph_of(LLAMA, "chunk", capacity=1024)
    long = step_graph(
        LLAMA,
        "chunk",
        formats={name: const.format for name, const in graph.consts.items()},
        rows=513,
        capacity=1024,
    )
    with pytest.raises(CallerError, match=r"a chunk of 513 rows is too long: .* up to 512"):
        lowered(long)


def test_a_graph_that_is_not_legal_is_refused() -> None:
    graph = graph_of(LLAMA, "decode")
    with pytest.raises(CallerError, match="is not legal"):
        lowered(replace(graph, ops=graph.ops[1:]))
