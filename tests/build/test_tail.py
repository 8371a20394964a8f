"""What a layer does behind its attention as one launch, and where it stays six."""

from dataclasses import replace
from itertools import pairwise

import pytest

from bedstone.build.costs import Cost
from bedstone.build.counting import launch_costs
from bedstone.build.emit import Emission, Forms, Naming, emit
from bedstone.build.lane import Lane, lane_of
from bedstone.build.launches import calls
from bedstone.build.operand import Values
from bedstone.build.plan import plan_form
from bedstone.build.request import Options, served_forms
from bedstone.build.step import PlannedStep, plan_step
from bedstone.checkpoint.shapes import shape_checkpoint
from bedstone.lane.schedule import Schedule
from bedstone.spec.codec import serialize
from bedstone.spec.manifest import Manifest, Module, Segment
from bedstone.target.hardware import read_sets
from bedstone.verify import check
from reference_reader import AVAILABLE, reference_reader


def lane(numerics: str = "quantized", hardware: str = "hopper") -> Lane:
    return lane_of(read_sets()[hardware], numerics)


def named(name: str, matrices: str, on: Lane | None = None, sequences: int = 1) -> Emission:
    """The manifest of a known model."""
    on, options = on or lane(), Options("quantized", 4096, (), sequences)
    shape = shape_checkpoint(name, matrices)
    forms = Forms(**{form: plan_form(shape, form, options, on) for form in served_forms(options)})
    own = {n: (Segment(f"own.{n}"),) for _, each in forms.each() for n in each.consts}
    return emit(forms, Naming(name, shape.config.vocab, 4096, own), on.kernels)


def entries(manifest: Manifest, program: str) -> list[str]:
    ops = [manifest.ops[call.op] for call in manifest.programs[program].calls]
    return [launch.entry for op in ops for launch in op.impl.launches]


@pytest.mark.parametrize("program", ["decode", "decode_chain"])
@pytest.mark.parametrize("matrices", ["q4_k", "q8_0"])
def test_all_layers_end_in_one_launch(matrices: str, program: str) -> None:
    first = ["embed_x", "norm_f", "parts3_x_rows", "attention_turned_n"]
    last = ["tail_linear_x", "argmax"]
    wanted = [*first, *["tail_parts3_x_rows", "attention_turned_n"] * 35, *last]
    found = entries(named("qwen3-8b", matrices).manifest, program)
    assert found == [entry.replace("_x", f"_{matrices}") for entry in wanted]


@pytest.mark.parametrize("name", ["qwen3-0.6b", "qwen3-1.7b"])
def test_few_weights_of_halves_do_so_too(name: str) -> None:
    """More take launches apart, which are as fast."""
    found = entries(named(name, "bf16").manifest, "decode")
    assert found.count("tail_parts3_bf16_rows") == 27
    assert found[-2:] == ["tail_linear_bf16", "argmax"]


@pytest.mark.parametrize(
    ("name", "matrices", "hardware"),
    [
        ("qwen3-0.6b", "q8_0", "hopper"),  # its rows are shorter than a span a warp
        ("gemma-3-4b", "q8_0", "hopper"),
        ("qwen3-30b-a3b", "q8_0", "hopper"),
        ("qwen3-4b", "bf16", "hopper"),
        ("llama-3.2-1b", "bf16", "hopper"),
        ("qwen3-8b", "bf16", "hopper"),
        ("qwen3-0.6b", "bf16", "blackwell"),
        ("qwen3-8b", "q4_k", "blackwell"),
        ("qwen3-8b", "q4_k", "cuda-generic"),
    ],
)
def test_others_take_launches_as_before(name: str, matrices: str, hardware: str) -> None:
    found = entries(named(name, matrices, lane(hardware=hardware)).manifest, "decode")
    assert not [entry for entry in found if entry.startswith("tail")]


@pytest.mark.parametrize("program", ["prefill", "decode_many"])
def test_more_rows_take_launches_as_before(program: str) -> None:
    found = entries(named("qwen3-8b", "q4_k", sequences=3).manifest, program)
    assert not [entry for entry in found if entry.startswith("tail")]


def planned(name: str = "qwen3-8b", matrices: str = "q4_k") -> PlannedStep:
    return plan_step(shape_checkpoint(name, matrices), "decode", Options("quantized", 4096), lane())


def tails(made: Schedule) -> int:
    found = calls(made, lane().kernels, 4096)
    return sum(call.join is not None and call.join.kind == "tail" for call in found)


def test_a_tensor_that_somebody_else_reads_is_left_in_memory() -> None:
    made = planned().schedule
    assert tails(made) == 36
    for tensor in ("l1.o", "l1.h", "l1.m", "l1.glu", "l1.down", "l2.n"):
        assert tails(replace(made, outputs=(*made.outputs, tensor))) == 35


def test_results_lie_over_nothing_that_is_read_late() -> None:
    """Blocks have read `attended` and `x` before one writes a result; nothing else is shared."""
    made = planned().schedule
    for call in calls(made, lane().kernels, 4096):
        if call.join is None or call.join.kind != "tail":
            continue
        names = [param.name for param in call.join.kernel.params]
        given = [call.given[name] for name in names]
        memory = {operand.tensor for operand in given if isinstance(operand, Values)}
        results = [n for n in ("sum", "y0", "y1", "y") if n in names]
        assert memory == {call.given[n].tensor for n in ("attended", "x", *results)}
        slots = sorted((made.buffers[call.given[n].tensor].f32 for n in results),
                       key=lambda slot: slot.offset)  # fmt: skip
        assert all(a.end <= b.offset for a, b in pairwise(slots))


def test_a_plan_counts_what_the_launches_would_take() -> None:
    joined = planned()
    kernels = replace(lane().kernels, joins={})
    apart = PlannedStep(joined.graph, joined.schedule, replace(lane(), kernels=kernels), 4096)
    assert Cost.of(launch_costs(joined, 512)) == Cost.of(launch_costs(apart, 512))


def test_a_manifest_with_tails_is_accepted_by_every_reader() -> None:
    made = named("qwen3-8b", "q4_k", sequences=2).manifest
    pinned = replace(made, modules={name: Module(name, "0" * 64) for name in made.modules})
    assert check(pinned) == []
    if AVAILABLE:
        with reference_reader() as reader:
            answer = reader.ask(serialize(pinned))
        assert (answer.accepted, answer.messages) == (True, ())
