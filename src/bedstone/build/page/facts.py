"""What a page draws, as a JSON value: launches with their operands, lives of buffers, numbers."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from bedstone.build.costs import Moved
from bedstone.build.counting import launch_costs, named_values
from bedstone.build.joined import Together
from bedstone.build.page.lives import Life, lives
from bedstone.build.step import PlannedStep
from bedstone.build.summary import Summary, launch_layers
from bedstone.build.survey import Survey
from bedstone.graph.step import StepGraph
from bedstone.graph.text import emit_op
from bedstone.lane.schedule import Schedule
from bedstone.library.kernel import KernelSet

FAMILIES: Mapping[str, str] = {
    kind: family
    for family, kinds in {
        "product": "gemv gemm gemv_parts gemm_parts glu head_product",
        "norm": "norm add_norm l2norm gated_norm",
        "rope": "rope rope_parts",
        "attention": "attention flat_attention attention_turned",
        "rows": "set_rows take_row take_part concat gather",
        "quantize": "quantize",
        "mixture": "route score topk renorm expert_glu expert_product expert_sum weighted_sum",
        "recurrent": "conv conv_parts delta decay",
        "ends": "embed argmax sample finish",
    }.items()
    for kind in kinds.split()
}
"""The colour of a launch by its kind; a kind that is not here is elementwise."""


def page_facts(survey: Survey) -> dict[str, Any]:
    """Everything the page shows."""
    head = survey.json()
    return {
        **{key: head[key] for key in ("model", "architecture", "numerics", "context", "held")},
        "bandwidth": head["bandwidth"],
        "forms": {
            form: {**head[form], **_step(planned, survey.summaries[form])}
            for form, planned in survey.steps.items()
        },
    }


def _step(planned: PlannedStep, summary: Summary) -> dict[str, Any]:
    graph, schedule = planned.graph, planned.schedule
    return {
        "ops": [emit_op(op) for op in graph.ops],
        "steps": _launches(planned, summary.at),
        "lives": _lives(planned),
        "missed": [[miss.op, miss.rule, miss.reason, miss.why] for miss in schedule.misses],
        "arena_bytes": schedule.arena_bytes,
    }


def _launches(planned: PlannedStep, at: int) -> list[dict[str, Any]]:
    schedule, shapes = planned.schedule, _shapes(planned.graph)
    fired = _rules(schedule)
    layers, costs = launch_layers(planned), launch_costs(planned, at)
    return [
        {
            "entry": call.entry(schedule),
            "kind": call.kind(schedule),
            "family": FAMILIES.get(call.kind(schedule), "elementwise"),
            "source": _source(call, schedule, planned.lane.kernels),
            "layer": layer,
            "ops": (ops := [op for step in call.steps(schedule) for op in step.ops]),
            "rules": sorted({rule for op in ops for rule in fired[op]}),
            "operations": cost.operations,
            "moved": [_moved(moved, shapes) for moved in cost.moved],
        }
        for call, layer, cost in zip(planned.calls, layers, costs, strict=True)
    ]


def _source(call: Together, schedule: Schedule, kernels: KernelSet) -> str | None:
    kernel = kernels.get(call.entry(schedule)) if call.join is None else call.join.kernel
    return None if kernel is None else kernel.source


def _lives(planned: PlannedStep) -> list[list[Any]]:
    """The life of every slot, by the calls that the schedule's steps are made in."""
    calls_of = [at for at, call in enumerate(planned.calls) for _ in call.places]
    return [_life(life, calls_of) for life in lives(planned.schedule)]


def _rules(schedule: Schedule) -> defaultdict[int, set[str]]:
    """The rules that took in each op."""
    fired: defaultdict[int, set[str]] = defaultdict(set)
    for fusion in schedule.fusions:
        for op in fusion.ops:
            fired[op].add(fusion.rule)
    return fired


def _shapes(graph: StepGraph) -> dict[str, list[int]]:
    """The shape of every name, constants and tables among them."""
    shapes = {name: [value.rows, value.width] for name, value in named_values(graph).items()}
    return shapes | {name: list(const.shape) for name, const in graph.consts.items()}


def _moved(moved: Moved, shapes: Mapping[str, list[int]]) -> list[Any]:
    """Name, what it is, form, shape, bytes, and whether it is written."""
    shape = shapes[moved.name]
    return [moved.name, moved.what, moved.form, shape, moved.nbytes, int(moved.write)]


def _life(life: Life, calls_of: Sequence[int]) -> list[Any]:
    """Tensor, piece, shape, offset, bytes, first and last launch, its readers and its writers."""
    buffer, slot = life.buffer, life.slot
    place = [slot.offset, slot.nbytes, calls_of[life.first], calls_of[life.last]]
    shape = [buffer.rows, buffer.width]
    readers, writers = (
        sorted({calls_of[step] for step in users}) for users in (life.readers, life.writers)
    )
    return [buffer.tensor, life.piece, shape, *place, readers, writers]
