"""Bytes and operations, against the formulas they follow from."""

import pytest

from bedstone.build.costs import Cost
from bedstone.build.counting import launch_costs
from bedstone.build.request import Options
from bedstone.build.step import plan_step
from bedstone.checkpoint.shapes import shape_checkpoint
from bedstone.lane.launch import Attention, Delta, Embed, ExpertGlu, Glu, Sequences
from cuda_sets import every_entry
from planned import planned

F32, BF16 = 4, 2


def of_kind(step, kind, at=1000):
    """The cost of the first launch of a kind."""
    launches = [s.launch for s in step.schedule.steps]
    index = next(i for i, launch in enumerate(launches) if isinstance(launch, kind))
    return launch_costs(step, at)[index], launches[index]


def matrix_values(config):
    """The values of every matrix a step multiplies by."""
    q, kv = config.heads * config.head_dim, config.kv_heads * config.head_dim
    layer = config.hidden * (2 * q + 2 * kv + 3 * config.intermediate)
    return config.layers * layer + config.vocab * config.hidden


@pytest.mark.parametrize("name", ["qwen3-0.6b", "qwen3-4b", "llama-3.2-1b", "llama-3.1-8b"])
def test_a_decode_step_streams_every_matrix_once(name):
    config = shape_checkpoint(name).config
    cost = Cost.of(launch_costs(planned(name), 1))
    vectors = F32 * config.layers * (2 * config.hidden + 2 * config.head_dim) + F32 * config.hidden
    assert 0 <= cost.weights - 2 * matrix_values(config) - 2 * config.hidden <= vectors


def test_a_decode_step_reads_the_keys_and_values_before_it_and_writes_its_own():
    config = shape_checkpoint("qwen3-4b").config
    row = BF16 * 2 * config.layers * config.kv_heads * config.head_dim
    for at in (1, 2, 1000):
        assert Cost.of(launch_costs(planned("qwen3-4b"), at)).cache == (at + 1) * row


def test_a_decode_step_computes_two_operations_a_value_and_attends_to_each_position():
    config = shape_checkpoint("qwen3-4b").config
    attended = 4 * config.layers * config.heads * config.head_dim
    found = Cost.of(launch_costs(planned("qwen3-4b"), 1000)).operations
    assert found == 2 * matrix_values(config) + 1000 * attended


def test_a_chunk_multiplies_its_rows_by_matrices_read_once():
    chunk, one = planned("qwen3-0.6b", "chunk"), planned("qwen3-0.6b")
    (many, launch), (single, _) = of_kind(chunk, Glu), of_kind(one, Glu)
    assert launch.rows == 512
    weights = [sum(m.nbytes for m in c.moved if m.what == "weights") for c in (many, single)]
    assert weights[0] == weights[1]
    assert many.operations == 512 * single.operations


def test_an_embedding_reads_the_rows_it_picks():
    cost, launch = of_kind(planned("qwen3-0.6b", "batch"), Embed)
    table = next(m for m in cost.moved if m.name == launch.table.const)
    assert (table.nbytes, cost.operations) == (3 * 1024 * 2, 0)


def test_a_row_of_a_chunk_sees_those_before_it():
    cost, launch = of_kind(planned("qwen3-0.6b", "chunk"), Attention)
    seen = sum(1000 - back for back in range(512))
    assert cost.operations == 2 * seen * launch.heads * (launch.dk + launch.dv)


def test_each_sequence_of_a_batch_reads_its_own_keys():
    one = Cost.of(launch_costs(planned("qwen3-0.6b"), 1000))
    batch = Cost.of(launch_costs(planned("qwen3-0.6b", "batch"), 1000))
    assert batch.cache == 3 * one.cache
    assert batch.operations == 3 * one.operations


@pytest.mark.parametrize(("at", "seen"), [(100, 100), (1024, 1024), (4096, 1024)])
def test_a_window_bounds_what_is_read(at, seen):
    cost, launch = of_kind(planned("gemma-3-4b"), Attention, at)
    keys = [m.nbytes for m in cost.moved if m.what == "cache" and not m.write]
    assert launch.window == 1024
    assert keys == [BF16 * seen * 4 * 256] * 2


def test_one_row_reads_the_experts_it_chooses_and_several_read_the_distinct_ones():
    one, launch = of_kind(planned("qwen3-30b-a3b"), ExpertGlu)
    several, _ = of_kind(planned("qwen3-30b-a3b", "batch"), ExpertGlu)
    expert = 2 * 768 * 2048
    gate, many = (
        next(m.nbytes for m in cost.moved if m.name == launch.gate.const) for cost in (one, several)
    )
    assert (launch.gate.count, launch.chosen, gate) == (128, 8, 8 * expert)
    assert many == round(128 * (1 - (1 - 8 / 128) ** 3) * expert)
    assert one.operations == 2 * 8 * 2 * 768 * 2048
    assert several.operations == 3 * one.operations


@pytest.mark.parametrize("form", ["decode", "batch"])
def test_a_recurrent_state_is_read_and_written_whole_for_each_sequence(form):
    step = planned("qwen3-next-80b-a3b", form)
    launches = [s.launch for s in step.schedule.steps]
    deltas = [i for i, launch in enumerate(launches) if is_delta(launch)]
    costs = launch_costs(step, 1000)
    states = [m for i in deltas for m in costs[i].moved if m.what == "cache"]
    sequences = 1 if form == "decode" else 3
    assert {m.nbytes for m in states} == {F32 * 32 * 128 * 128}
    assert sum(m.write for m in states) == sum(not m.write for m in states) == 36 * sequences


def is_delta(launch):
    return isinstance(launch.whole if isinstance(launch, Sequences) else launch, Delta)


def test_a_quantized_activation_has_a_scale_and_a_sum_for_each_32_codes():
    cost, launch = of_kind(planned("qwen3-0.6b", matrices="q4_0"), Glu)
    x = next(m for m in cost.moved if m.name == launch.x.tensor)
    assert (x.form, x.nbytes) == ("quant", 1024 + 8 * 1024 // 32)


def test_codes_and_tables_of_bfloat16_take_two_bytes_a_value():
    lane = every_entry("quantized")
    step = plan_step(shape_checkpoint("qwen3-0.6b"), "chunk", Options(context=4096), lane)
    cost, launch = of_kind(step, Glu)
    x = next(m for m in cost.moved if m.name == launch.x.tensor)
    assert (x.form, x.nbytes) == ("quant", 2 * 2048 * 1024)
    cost, launch = of_kind(step, Attention, at=3000)
    keys = next(m for m in cost.moved if m.name == launch.k.name)
    assert (keys.form, keys.nbytes) == ("bf16", 2 * 3000 * 8 * 128)


def test_time_is_that_of_the_slower_of_memory_and_arithmetic():
    cost = Cost(weights=600, cache=300, activations=100, operations=4000)
    assert cost.nbytes == 1000
    assert cost.seconds(bandwidth=500) == 2
    assert cost.seconds(bandwidth=500, compute=1000) == 4
    assert cost.seconds(bandwidth=500, compute=1e9) == 2
