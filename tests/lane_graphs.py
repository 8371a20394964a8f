"""Step graphs for the lane's tests, and a schedule of one held against the graph's own oracle."""

import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from bedstone.checkpoint.config import ModelConfig, RopeConfig
from bedstone.graph.step import StepGraph
from bedstone.lane.census import census, kind
from bedstone.lane.cpu import CpuShim
from bedstone.lane.entries import entry
from bedstone.lane.launch import Launch
from bedstone.lane.plan import plan
from bedstone.lane.schedule import Miss, Schedule
from bedstone.library.catalog import cpu_kernels
from bedstone.models import step_graph
from bedstone.oracle.schedule import ScheduleOracle
from bedstone.oracle.step import StepOracle

CPU = CpuShim(cpu_kernels())


class AnyShim:
    """A lane that has a launch for everything."""

    def lacks(self, launch: Launch) -> str | None:  # noqa: ARG002
        return None


@dataclasses.dataclass(frozen=True)
class Without:
    """The CPU's lane without some kinds of launch, or some entries."""

    names: frozenset[str]

    def lacks(self, launch: Launch) -> str | None:
        if self.names & {kind(launch), entry(launch)}:
            return "taken away"
        return CPU.lacks(launch)


@dataclasses.dataclass(frozen=True)
class Refusing:
    """The CPU's lane without the launches that a test finds."""

    refused: Callable[[Any], bool]

    def lacks(self, launch: Launch) -> str | None:
        return "refused" if self.refused(launch) else CPU.lacks(launch)


def without(*names: str) -> Without:
    return Without(frozenset(names))


DENSE = ("norm", "conv1d", "A_log", "mlp.gate.", "shared_expert_gate")
"""Constants that checkpoints hold as f32 whatever the rest is held in."""


class Formats(dict[str, Any]):
    """Vectors, taps and routers in f32, every other matrix in one format."""

    def __init__(self, matrix: str) -> None:
        self.matrix = matrix

    def __missing__(self, name: str) -> str:
        dense = name.endswith("bias") or any(part in name for part in DENSE)
        return "f32" if dense else self.matrix


def config(architecture: str, **changes: Any) -> ModelConfig:
    """A small model of two layers."""
    head_dim = changes.get("head_dim", 16)
    rope = RopeConfig(
        "neox",
        head_dim,
        1e4,
        "default",
        tuple(1e4 ** (-2 * i / head_dim) for i in range(head_dim // 2)),
    )
    small = ModelConfig(
        architecture=architecture,
        name="tiny",
        vocab=96,
        hidden=64,
        layers=2,
        heads=4,
        kv_heads=2,
        head_dim=head_dim,
        intermediate=96,
        context=64,
        norm_eps=1e-5,
        rope=rope,
        activation="silu",
        tie_embeddings=True,
        attention_bias=False,
        attention_out_bias=False,
        mlp_bias=False,
        qk_norm=architecture == "Qwen3ForCausalLM",
        attention_scale=head_dim**-0.5,
        sliding_window=None,
        bos=None,
        eos=(),
    )
    return dataclasses.replace(small, **changes)


LLAMA = config("LlamaForCausalLM")
BIASED = config(
    "LlamaForCausalLM", attention_bias=True, mlp_bias=True, sliding_window=4, activation="gelu_tanh"
)
QWEN3 = config("Qwen3ForCausalLM")
LLAMA_1B = config(
    "LlamaForCausalLM",
    vocab=128256, hidden=2048, layers=16, heads=32, kv_heads=8, head_dim=64, intermediate=8192,
)  # fmt: skip
QWEN3_4B = config(
    "Qwen3ForCausalLM",
    vocab=151936, hidden=2560, layers=36, heads=32, kv_heads=8, head_dim=128, intermediate=9728,
)  # fmt: skip


def graph_of(
    model: ModelConfig,
    form: Any,
    matrix: str = "q8_0",
    capacity: int = 32,
    *,
    sampled: bool = False,
) -> StepGraph:
    """One form of a model: a chunk of up to 6 rows, a batch of 3 sequences."""
    return step_graph(
        model,
        form,
        formats=Formats(matrix),
        rows={"decode": 1, "chunk": 6, "batch": 3}[form],
        capacity=capacity,
        row_param="tokens" if form == "chunk" else None,
        sampled=sampled,
    )


def lowered(graph: StepGraph, numerics: Any = "precise", **options: Any) -> Schedule:
    """The schedule on the CPU's lane."""
    return plan(graph, numerics=numerics, **({"shim": CPU} | options))


def fired(schedule: Schedule) -> Counter[str]:
    return Counter(fusion.rule for fusion in schedule.fusions)


def misses(schedule: Schedule, rule: str) -> list[Miss]:
    return [miss for miss in schedule.misses if miss.rule == rule]


def kinds(schedule: Schedule) -> dict[str, int]:
    return dict(census(schedule))


@dataclasses.dataclass(frozen=True)
class Setting:
    """Everything a step of a graph takes: weights, tables part full, ids and params."""

    constants: dict[str, np.ndarray]
    tables: dict[str, np.ndarray]
    ids: dict[str, list[int]]
    params: dict[str, int]

    def copied(self) -> dict[str, np.ndarray]:
        return {name: table.copy() for name, table in self.tables.items()}


def setting(graph: StepGraph, seed: int = 0) -> Setting:
    """Random weights; each param's sequence somewhere in its tables, all beyond it NaN."""
    rng = np.random.default_rng(seed)
    constants = {
        c.name: rng.normal(0, 0.3, c.shape).astype(np.float32) for c in graph.consts.values()
    }
    rows = graph.rows if graph.row_param is None else graph.rows - 1
    params = {graph.row_param: rows} if graph.row_param else {}
    step = 1 if graph.form == "batch" else rows
    for i, name in enumerate(n for n in graph.params if n != graph.row_param):
        params[name] = 5 + 2 * i + step
    longest = max((v for n, v in params.items() if n != graph.row_param), default=0)
    tables = {}
    for table in graph.tables.values():
        if not table.scratch:
            cached = rng.normal(0, 1, (table.capacity, table.width)).astype(np.float32)
            if table.zeros:
                tables[table.name] = cached
                continue
            own = params.get(f"pos.{table.name.rsplit('.', 1)[-1]}", longest)
            cached[own - step if graph.form != "batch" else own - 1 :] = np.nan
            tables[table.name] = cached
    vocab = next(iter(graph.consts.values())).shape[0]
    ids = {name: [int(i) for i in rng.integers(0, vocab, rows)] for name in graph.carried}
    return Setting(constants, tables, ids, params)


def outcome(schedule: Schedule, given: Setting) -> dict[str, np.ndarray]:
    """The outputs of a step run on the schedule's buffers, and the tables it leaves."""
    oracle = ScheduleOracle(schedule, given.constants, tables=given.copied())
    return oracle.run(given.ids, given.params) | oracle.tables


def truth(graph: StepGraph, given: Setting, numerics: Any = "precise") -> dict[str, np.ndarray]:
    """The outputs and tables of the step graph itself, in float32."""
    oracle = StepOracle(
        graph, given.constants, np.float32, numerics=numerics, tables=given.copied()
    )
    return oracle.run(given.ids, given.params) | oracle.tables


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    """Bit for bit, NaN where NaN."""
    return a.keys() == b.keys() and all(np.array_equal(a[n], b[n], equal_nan=True) for n in a)


def assert_computes(schedule: Schedule, graph: StepGraph, numerics: Any = "precise") -> None:
    given = setting(graph)
    expected = truth(graph, given, numerics)
    assert np.isfinite(expected["logits"]).all()
    assert same(outcome(schedule, given), expected)
