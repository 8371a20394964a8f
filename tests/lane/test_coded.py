"""Activations coded as bfloat16: which products read them, and what they take of memory."""

from dataclasses import replace

import pytest

from bedstone.graph.step import FormName, StepGraph
from bedstone.lane.census import census
from bedstone.lane.cuda import CudaShim
from bedstone.lane.entries import entry
from bedstone.lane.errors import ChunkLengthError
from bedstone.lane.facts import Facts, Knobs
from bedstone.lane.launch import Attention
from bedstone.lane.schedule import QuantSlots, Schedule, Slot
from bedstone.lane.touch import reads_of
from bedstone.lane.verify import verify
from bedstone.library.coding import BF16, INT8
from bedstone.library.kernel import KernelSet
from bedstone.models import step_graph
from cuda_sets import every_entry
from lane_graphs import QWEN3, Formats, assert_computes, config, graph_of
from lane_zoo import SHALLOW, experts

LANE = every_entry("quantized")


def batch(rows: int, matrix: str = "bf16", model=QWEN3) -> StepGraph:
    return step_graph(model, "batch", formats=Formats(matrix), rows=rows, capacity=32)


def forms(schedule: Schedule) -> set[str]:
    return {read.form for step in schedule.steps for read in reads_of(step.launch)}


def faults(schedule: Schedule, graph: StepGraph) -> list[str]:
    facts = Facts.of(graph, schedule.numerics, Knobs(), BF16)
    return verify(schedule, facts, LANE.shim)


@pytest.mark.parametrize(("rows", "read"), [(8, {"f32"}), (9, {"f32", "quant"})])
def test_only_steps_of_many_rows_read_codes(rows: int, read: set[str]) -> None:
    assert forms(LANE.lower(batch(rows))) == read
    assert forms(every_entry("precise").lower(batch(rows))) == {"f32"}


@pytest.mark.parametrize("form", ["batch", "chunk"])
@pytest.mark.parametrize(("numerics", "name"), [("precise", "bf16"), ("quantized", "q_bf16")])
def test_products_of_one_input_are_one_launch_of_any_rows(
    form: FormName, numerics: str, name: str
) -> None:
    graph = step_graph(QWEN3, form, formats=Formats("bf16"), rows=12, capacity=32)
    schedule = every_entry(numerics).lower(graph)
    assert schedule.misses == ()
    names = {entry(step.launch) for step in schedule.steps}
    assert f"parts3_{name}_rows" in names
    assert census(schedule)["gemm_parts"] == QWEN3.layers
    if numerics == "precise":
        assert_computes(schedule, graph, "precise")


def test_matrices_of_floats_read_floats() -> None:
    assert forms(LANE.lower(batch(12, "f32"))) == {"f32"}
    assert forms(LANE.lower(batch(12, "q8_0"))) == {"f32", "quant"}


def test_rows_that_are_no_whole_blocks_read_floats() -> None:
    schedule = LANE.lower(batch(12, model=config("LlamaForCausalLM", intermediate=92)))
    names = {entry(step.launch) for step in schedule.steps}
    assert {"glu_q_bf16", "linear_bf16"} <= names


def test_the_last_row_of_a_chunk_is_one_row() -> None:
    graph = step_graph(
        QWEN3, "chunk", formats=Formats("bf16"), rows=12, capacity=32, row_param="tokens"
    )
    *_, head, _ = LANE.lower(graph).steps
    assert entry(head.launch) == "linear_bf16"


@pytest.mark.parametrize("name", SHALLOW)
def test_a_gate_of_one_row_is_read_as_it_is(name: str) -> None:
    for held in ((), ("shared_expert",)):
        schedule = LANE.lower(batch(12, model=SHALLOW[name]), held)
        for step in schedule.steps:
            m = getattr(step.launch, "m", None)
            if m is not None and m.n == 1:
                assert reads_of(step.launch)[0].form == "f32"


def test_networks_of_unlike_widths_are_summed_apart() -> None:
    """Experts 36 wide read floats, the shared network beside them codes: no kernel does both."""
    mixture = experts(intermediate=36, shared=64)
    graph = batch(12, model=config("Qwen2MoeForCausalLM", mixture=mixture))
    schedule = LANE.lower(graph)
    names = {entry(step.launch) for step in schedule.steps}
    assert {"xdown_bf16", "linear_q_bf16"} <= names
    assert any(miss.rule == "shared_expert" and miss.reason == "shim" for miss in schedule.misses)
    alike = LANE.lower(batch(12, model=config("Qwen2MoeForCausalLM", mixture=experts(shared=64))))
    assert "xdown_s_q_bf16" in {entry(step.launch) for step in alike.steps}


def test_codes_take_two_bytes_and_nothing_beside() -> None:
    graph = batch(12)
    schedule = LANE.lower(graph)
    assert schedule.coding == BF16
    coded = [buffer for buffer in schedule.buffers.values() if buffer.quant is not None]
    assert coded
    for buffer in coded:
        assert buffer.quant is not None
        assert dict(buffer.quant.pieces()).keys() == {"codes"}
        assert buffer.quant.codes.nbytes == 2 * buffer.rows * buffer.width
    assert faults(schedule, graph) == []


def test_scales_that_a_coding_has_no_use_for_are_a_fault() -> None:
    graph = batch(12)
    schedule = LANE.lower(graph)
    buffers = dict(schedule.buffers)
    name = next(name for name, buffer in buffers.items() if buffer.quant is not None)
    codes = buffers[name].quant.codes
    buffers[name] = replace(buffers[name], quant=QuantSlots(codes, Slot(codes.offset, 0)))
    assert any(f"buffer `{name}` lies at" in fault for fault in faults(
        replace(schedule, buffers=buffers), graph
    ))  # fmt: skip


def test_another_coding_than_the_lanes_is_a_fault() -> None:
    graph = batch(12)
    schedule = replace(LANE.lower(graph), coding=INT8)
    assert "activations are coded otherwise than the lane codes them" in faults(schedule, graph)


@pytest.mark.parametrize("name", SHALLOW)
@pytest.mark.parametrize("held", [(), ("glu",), ("residual_norm", "gemv_parts")])
def test_holding_rules_back_moves_no_rounding(name: str, held: tuple[str, ...]) -> None:
    """What is read coded is the same set of tensors, whatever is fused."""

    def coded(schedule: Schedule) -> set[str]:
        reads = (read for step in schedule.steps for read in reads_of(step.launch))
        return {read.tensor for read in reads if read.form == "quant"}

    graph = batch(12, model=SHALLOW[name])
    assert coded(LANE.lower(graph, held)) == coded(LANE.lower(graph))


def test_a_chunk_may_be_longer() -> None:
    chunk = {"formats": Formats("bf16"), "capacity": 4096, "row_param": "tokens"}
    model = replace(QWEN3, context=4096)
    assert LANE.lower(step_graph(model, "chunk", rows=2048, **chunk)).rows == 2048
    with pytest.raises(ChunkLengthError, match="2049 rows is too long: a lane compiles up to 2048"):
        LANE.lower(step_graph(model, "chunk", rows=2049, **chunk))


def test_the_shim_says_what_it_lacks() -> None:
    graph = graph_of(QWEN3, "decode", "bf16")
    launch = next(s.launch for s in LANE.lower(graph).steps if isinstance(s.launch, Attention))
    assert LANE.shim.lacks(launch) is None
    cut = replace(launch, splits=4)
    assert LANE.shim.lacks(cut) == "the span is attended whole, not in 4 pieces"
    assert CudaShim(KernelSet("none", {})).lacks(launch) == "no kernel `attention`"
