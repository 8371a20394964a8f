"""Two launches of a schedule that one kernel does, and when they stay two."""

from collections import Counter
from dataclasses import replace

import pytest

from bedstone.build.emit import Forms, Naming, emit
from bedstone.build.joined import turned_for_one
from bedstone.build.lane import Lane, lane_of
from bedstone.checkpoint.config import ModelConfig
from bedstone.graph.step import FormName
from bedstone.lane.entries import entry
from bedstone.lane.launch import Attention, Rope
from bedstone.lane.schedule import Schedule
from bedstone.models import step_graph
from bedstone.spec.manifest import Manifest, Module, Segment
from bedstone.target.hardware import read_sets
from bedstone.verify import check
from build.test_emit import LLAMA, QWEN3, Formats

ROWS: dict[FormName, int] = {"decode": 1, "chunk": 48, "batch": 3}
PLAIN, NORMED = (replace(config, head_dim=64) for config in (LLAMA, QWEN3))


def lane(numerics: str = "quantized") -> Lane:
    return lane_of(read_sets()["hopper"], numerics)


def schedule(config: ModelConfig, form: FormName, on: Lane) -> Schedule:
    tokens = "tokens" if form == "chunk" else None
    sizes = {"rows": ROWS[form], "capacity": config.context, "row_param": tokens}
    return on.lower(step_graph(config, form, formats=Formats("bf16", "f32"), **sizes))


def emitted(config: ModelConfig, on: Lane) -> Manifest:
    forms = [schedule(config, form, on) for form in ROWS]
    own = {n: (Segment(f"own.{n}"),) for each in forms for n in each.consts}
    naming = Naming("tiny", config.vocab, config.context, own)
    return emit(Forms(*forms), naming, on.kernels).manifest


def called(manifest: Manifest, program: str) -> Counter[str]:
    """How often each kernel's entry is launched."""
    launches = [manifest.ops[call.op].impl.launches[0] for call in manifest.programs[program].calls]
    return Counter(launch.entry for launch in launches)


@pytest.mark.parametrize(("config", "normed"), [(PLAIN, ""), (NORMED, "_n")])
@pytest.mark.parametrize("program", ["decode", "decode_chain", "decode_many", "decode_many_chain"])
def test_a_step_rotates_and_attends_at_once(config: ModelConfig, normed: str, program: str) -> None:
    counts = called(emitted(config, lane()), program)
    assert counts[f"attention_turned{normed}"] == config.layers
    assert not [name for name in counts if name.startswith(("rope", "attention_q", "attention_m"))]


def test_rows_of_one_sequence_read_each_others_keys() -> None:
    counts = called(emitted(NORMED, lane()), "prefill")
    assert counts["rope_parts_n_rows"] == counts["attention_q"] == NORMED.layers


def test_a_set_without_such_a_kernel_launches_both() -> None:
    for config, on in ((LLAMA, lane()), (PLAIN, lane("precise"))):
        counts = called(emitted(config, on), "decode")
        assert counts["rope_parts_rows"] == counts["attention"] == config.layers


def taken(schedule: Schedule, *steps: int) -> list[str]:
    return [entry(schedule.steps[at].launch) for at in steps]


def test_the_places_are_those_of_rotations_before_attention() -> None:
    made = schedule(NORMED, "decode", lane())
    pairs = sorted(turned_for_one(made))
    assert len(pairs) == NORMED.layers
    for at in pairs:
        assert taken(made, at, at + 1) == ["rope_parts_n_rows", "attention"]


def changed(made: Schedule, at: int, launch: Rope | Attention) -> Schedule:
    steps = list(made.steps)
    steps[at] = replace(steps[at], launch=launch)
    return replace(made, steps=tuple(steps))


def test_queries_that_somebody_else_reads_stay_in_memory() -> None:
    made = schedule(NORMED, "decode", lane())
    first, *others = sorted(turned_for_one(made))
    rope = made.steps[first].launch
    assert isinstance(rope, Rope)
    queries = rope.sides[0].dst.tensor
    assert turned_for_one(replace(made, outputs=(*made.outputs, queries))) == set(others)
    view = replace(made.buffers[queries], tensor="view", view_of=queries, f32=None)
    seen = replace(made, buffers={**made.buffers, "view": view}, outputs=(*made.outputs, "view"))
    assert turned_for_one(seen) == set(others)


@pytest.mark.parametrize(
    "other",
    [
        lambda attention: replace(attention, pos="another"),
        lambda attention: replace(attention, k=replace(attention.k, name="another")),
        lambda attention: replace(attention, q=replace(attention.q, tensor="another")),
        lambda attention: replace(attention, heads=2),
        lambda attention: replace(attention, dk=128),
    ],
)
def test_an_attention_of_something_else_is_apart(other) -> None:
    made = schedule(NORMED, "decode", lane())
    first, *others = sorted(turned_for_one(made))
    attention = made.steps[first + 1].launch
    assert isinstance(attention, Attention)
    assert turned_for_one(changed(made, first + 1, other(attention))) == set(others)


def test_a_manifest_with_such_calls_is_accepted() -> None:
    made = emitted(NORMED, lane())
    modules = {name: Module(name, "0" * 64) for name in made.modules}
    assert check(replace(made, modules=modules)) == []
