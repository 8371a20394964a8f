"""Forms of a model agree: chunks with single rows, a batch with its sequences, steps in a chain."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest

from bedstone.graph.step import StepGraph
from bedstone.lane.schedule import GEMV_ROWS, Schedule
from bedstone.models import step_graph
from bedstone.oracle.schedule import ScheduleOracle
from bedstone.oracle.step import StepOracle
from lane_graphs import Formats, assert_computes, graph_of, lowered, setting
from lane_zoo import SHALLOW

IDS = (5, 17, 42, 3, 3, 58, 9, 26, 0)
NUMERICS = ("precise", "quantized")


@cache
def planned(family: str, form: str, numerics: Any) -> tuple[StepGraph, Schedule]:
    graph = graph_of(SHALLOW[family], form)
    return graph, lowered(graph, numerics)


@cache
def constants(family: str) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for form in ("decode", "chunk", "batch"):
        for name, values in setting(planned(family, form, "precise")[0]).constants.items():
            found.setdefault(name, values)
    latent, heads = SHALLOW[family].latent, SHALLOW[family].heads
    for name in [name for name in found if name.endswith("kv_b_proj.weight")] if latent else ():
        up = found[name].reshape(heads, -1, latent.kv_rank)
        stem = name.removesuffix(".weight")
        found[f"{stem}.key.weight"] = up[:, : latent.own]
        found[f"{stem}.value.weight"] = up[:, latent.own :]
    return found


@dataclass
class Fed:
    """One sequence fed through schedules; its tables begin with noise in every row."""

    family: str
    numerics: str
    tables: dict[str, np.ndarray] = field(default_factory=dict)
    length: int = 0

    def __post_init__(self) -> None:
        rng = np.random.default_rng(3)
        for table in planned(self.family, "decode", "precise")[0].tables.values():
            shape = (table.capacity, table.width)
            self.tables[table.name] = rng.normal(0, 100, shape).astype(np.float32)

    def feed(self, ids: Sequence[int], form: str) -> dict[str, np.ndarray]:
        """The outputs after the rows of one step."""
        _, schedule = planned(self.family, form, self.numerics)
        oracle = ScheduleOracle(schedule, constants(self.family), tables=self.tables)
        self.length += len(ids)
        params = {"pos": self.length} | ({"tokens": len(ids)} if form == "chunk" else {})
        return oracle.run({"prompt" if form == "chunk" else "token": list(ids)}, params)

    def cached(self) -> dict[str, np.ndarray]:
        """What the sequence keeps: its rows of each table, or its whole state."""
        graph, _ = planned(self.family, "decode", "precise")
        return {
            name: table if graph.tables[name].zeros else table[: self.length]
            for name, table in self.tables.items()
        }


def assert_agree(one: Fed, other: Fed) -> None:
    """The same bits; a latent attended to another way in chunks agrees to rounding."""
    for name, rows in one.cached().items():
        if name.startswith("c."):
            np.testing.assert_allclose(rows, other.cached()[name], rtol=1e-3, atol=1e-4)
        else:
            np.testing.assert_array_equal(rows, other.cached()[name], err_msg=name)


@pytest.mark.parametrize("numerics", NUMERICS)
@pytest.mark.parametrize("family", SHALLOW)
def test_any_chunking_leaves_what_single_rows_leave(family: str, numerics: str) -> None:
    """Over the window's edge, over the ring's, from the first row on."""
    alone = Fed(family, numerics)
    last = [alone.feed([token], "decode") for token in IDS][-1]
    for sizes in ((6, 3), (1, 4, 4), (2, 6, 1)):
        sequence, rest = Fed(family, numerics), list(IDS)
        made: dict[str, np.ndarray] = {}
        for size in sizes:
            made = sequence.feed(rest[:size], "chunk")
            del rest[:size]
        if SHALLOW[family].latent is None:
            np.testing.assert_array_equal(made["logits"], last["logits"])
        elif numerics == "precise":
            np.testing.assert_allclose(made["logits"], last["logits"], rtol=1e-3, atol=1e-3)
        if numerics == "precise" or SHALLOW[family].latent is None:
            assert_agree(sequence, alone)


@pytest.mark.parametrize("numerics", NUMERICS)
@pytest.mark.parametrize("family", SHALLOW)
def test_a_batch_does_what_each_of_its_sequences_does(family: str, numerics: str) -> None:
    prompts = (IDS[:5], IDS[2:4], IDS[1:8])
    alone = [Fed(family, numerics) for _ in prompts]
    together: dict[str, np.ndarray] = {}
    for number, (sequence, prompt) in enumerate(zip(alone, prompts, strict=True)):
        for token in prompt:
            sequence.feed([token], "decode")
        together |= {f"{name}.{number}": t.copy() for name, t in sequence.tables.items()}
    tokens = [7, 31, 2]
    _, schedule = planned(family, "batch", numerics)
    oracle = ScheduleOracle(schedule, constants(family), tables=together)
    params = {f"pos.{i}": sequence.length + 1 for i, sequence in enumerate(alone)}
    made = oracle.run({"token": tokens}, params)
    for number, (sequence, token) in enumerate(zip(alone, tokens, strict=True)):
        one = sequence.feed([token], "decode")
        np.testing.assert_array_equal(made["logits"][number], one["logits"][0])
        for name, table in sequence.tables.items():
            np.testing.assert_array_equal(together[f"{name}.{number}"], table, err_msg=name)


@pytest.mark.parametrize("form", ["decode", "chunk", "batch"])
@pytest.mark.parametrize("family", SHALLOW)
def test_a_step_writes_its_own_rows_and_nothing_else(family: str, form: str) -> None:
    graph, schedule = planned(family, form, "precise")
    given = setting(graph)
    tables = given.copied()
    oracle = ScheduleOracle(schedule, given.constants, tables=tables)
    oracle.run(given.ids, given.params)
    rows = 1 if form == "batch" else given.params.get("tokens", 1)
    for name, before in given.tables.items():
        length = given.params[f"pos.{name.rpartition('.')[2]}" if form == "batch" else "pos"]
        changed = np.flatnonzero(
            (tables[name] != before).any(axis=1) & ~both_nan(tables[name], before)
        )
        if not graph.tables[name].zeros:
            assert changed.tolist() == list(range(length - rows, length))
            assert np.isfinite(tables[name][length - rows : length]).all()


def both_nan(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (np.isnan(a) & np.isnan(b)).all(axis=1)


@pytest.mark.parametrize("family", SHALLOW)
def test_steps_chain_by_what_the_arg_max_leaves(family: str) -> None:
    graph, schedule = planned(family, "decode", "precise")
    oracle = ScheduleOracle(schedule, constants(family))
    truth = StepOracle(graph, constants(family), np.float32)
    ids, params, tokens = {"token": [11]}, {"pos": 1}, [11]
    for length in range(1, 7):
        oracle.run(ids, params)
        expected = truth.run({"token": [tokens[-1]]}, {"pos": length})
        tokens.append(int(expected["next"][0, 0]))
        ids, params = oracle.next_ids, oracle.next_params
        assert ids == {"token": [tokens[-1]]}
        assert params == {"pos": length + 1}


def test_each_sequence_of_a_batch_advances_by_itself() -> None:
    graph, schedule = planned("qwen3", "batch", "precise")
    given = setting(graph)
    oracle = ScheduleOracle(schedule, given.constants, tables=given.copied())
    made = oracle.run(given.ids, given.params)
    assert oracle.next_ids == {"token": made["next"][:, 0].tolist()}
    assert oracle.next_params == {name: value + 1 for name, value in given.params.items()}


@pytest.mark.parametrize("rows", [GEMV_ROWS - 1, GEMV_ROWS, GEMV_ROWS + 1])
@pytest.mark.parametrize("numerics", NUMERICS)
def test_more_rows_than_a_gemv_takes_are_the_same_rows(rows: int, numerics: Any) -> None:
    graph = step_graph(SHALLOW["qwen3"], "chunk", formats=Formats("q8_0"), rows=rows, capacity=32)
    schedule = lowered(graph, numerics)
    merged = any(fusion.rule == "gemv_parts" for fusion in schedule.fusions)
    assert merged == (rows <= GEMV_ROWS)
    assert_computes(schedule, graph, numerics)
