"""The kernel entries that launches call: all in the catalog, and named as it names them."""

import itertools
from typing import Any

import pytest

from bedstone.graph.step import AtParam
from bedstone.lane.entries import entry
from bedstone.lane.facts import Knobs
from bedstone.lane.launch import (
    Dst,
    GemmPart,
    Glu,
    Launch,
    Matrix,
    Parts,
    Read,
    SetRows,
    ToBuf,
    ToRows,
    ToScratch,
)
from bedstone.lane.plan import RULES
from bedstone.library.catalog import cpu_kernels
from lane_graphs import BIASED, LLAMA, QWEN3, graph_of, lowered, without

Q4, Q8 = Matrix("a", "q4_1", 32, 32), Matrix("b", "q8_0", 32, 32)
ROWS = ToRows("K", AtParam("pos"), "K@1")
BUF, QUANT, BOTH = ToBuf("y"), ToBuf("y", f32=False, quant=True), ToBuf("y", quant=True)


def parts(*members: tuple[Matrix, Dst, str | None]) -> Launch:
    return Parts(Read("x", "quant"), 1, tuple(GemmPart(*member) for member in members))


@pytest.mark.parametrize(
    ("launch", "name"),
    [
        (parts((Q4, BUF, None), (Q4, BUF, None)), "parts2_q_q4_1"),
        (parts((Q4, BUF, None), (Q4, BUF, None), (Q4, ROWS, None)), "parts3_q_q4_1_rows"),
        (parts((Q4, BUF, "b"), (Q4, ROWS, "b")), "parts2_q_q4_1_b_rows"),
        (parts((Q4, BUF, None), (Q8, BUF, None)), "parts2_q4_1_q8_0"),
        (parts((Q4, BUF, "b"), (Q4, BUF, None)), "parts2_q4_1_b_q4_1"),
        (parts((Q4, ROWS, None), (Q4, ROWS, None)), "parts2_q_q4_1_rows_rows"),
        (Glu(Read("x", "quant"), Q4, Q4, "silu", 1, BOTH), "glu_q_q4_1_fq"),
        (Glu(Read("x"), Q4, Q8, "silu", 1, QUANT), "glu_q4_1_q8_0_q"),
        (SetRows(Read("x"), 1, 32, ROWS), "set_rows"),
        (SetRows(Read("x"), 2, 32, ToScratch("S", 0, "S@1")), "copy_rows"),
    ],
)
def test_an_entry_says_formats_forms_and_destinations(launch: Launch, name: str) -> None:
    assert entry(launch) == name


@pytest.mark.parametrize("numerics", ["precise", "quantized"])
def test_every_launch_of_a_plan_has_its_kernel(numerics: Any) -> None:
    kernels = cpu_kernels()
    options: list[dict[str, Any]] = [
        {},
        {"held": RULES},
        {"knobs": Knobs(fuse_quant=False)},
        {"shim": without("glu", "add_norm")},
    ]
    graphs = [
        graph_of(model, form, matrix)
        for model, form, matrix in itertools.product(
            (LLAMA, BIASED, QWEN3), ("decode", "chunk", "batch"), ("f16", "q4_1")
        )
    ]
    for graph, option in itertools.product(graphs, options):
        for step in lowered(graph, numerics, **option).steps:
            assert kernels.get(entry(step.launch)) is not None
