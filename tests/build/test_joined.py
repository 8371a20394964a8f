"""Launches of a schedule that one kernel does, and when they stay apart."""

from collections import Counter
from dataclasses import replace

import pytest

from bedstone.build.costs import Cost
from bedstone.build.counting import launch_costs
from bedstone.build.emit import Forms, Naming, emit
from bedstone.build.lane import Lane, lane_of
from bedstone.build.launches import calls
from bedstone.build.report import report
from bedstone.build.step import PlannedStep
from bedstone.build.summary import summarize
from bedstone.checkpoint.config import ModelConfig
from bedstone.graph.step import FormName
from bedstone.lane.entries import entry
from bedstone.lane.launch import ArgMax, Attention, Launch, Read, Rope, Sequences
from bedstone.lane.schedule import Schedule
from bedstone.library.cuda import catalog
from bedstone.library.kernel import Geometry, Joining, KernelSet, Taken
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


def turning() -> KernelSet:
    """The kernels of a lane, of several launches those alone that rotate and attend."""
    made = lane().kernels
    joins = {n: join for n, join in made.joins.items() if join.kind == "attention_turned"}
    return replace(made, joins=joins)


def places(made: Schedule, kernels: KernelSet | None = None) -> list[range]:
    """Where several launches are one kernel's."""
    every = calls(made, kernels or turning(), NORMED.context)
    assert [at for call in every for at in call.places] == list(range(len(made.steps)))
    return [call.places for call in every if call.join is not None]


def test_the_places_are_those_of_rotations_before_attention() -> None:
    made = schedule(NORMED, "decode", lane())
    pairs = places(made)
    assert len(pairs) == NORMED.layers
    for pair in pairs:
        names = [entry(made.steps[at].launch) for at in pair]
        assert names == ["rope_parts_n_rows", "attention"]


def changed(made: Schedule, at: int, launch: Launch) -> Schedule:
    steps = list(made.steps)
    steps[at] = replace(steps[at], launch=launch)
    return replace(made, steps=tuple(steps))


@pytest.mark.parametrize("form", ["decode", "batch"])
def test_queries_that_somebody_else_reads_stay_in_memory(form: FormName) -> None:
    made = schedule(NORMED, form, lane())
    first, *others = places(made)
    rope = made.steps[first.start].launch
    last = rope.members[-1] if isinstance(rope, Sequences) else rope
    assert isinstance(last, Rope)
    queries = last.sides[0].dst.tensor
    assert places(replace(made, outputs=(*made.outputs, queries))) == others
    view = replace(made.buffers[queries], tensor="view", view_of=queries, f32=None)
    seen = replace(made, buffers={**made.buffers, "view": view}, outputs=(*made.outputs, "view"))
    assert places(seen) == others
    closing = made.steps[-1].launch
    assert isinstance(closing, ArgMax)
    assert places(changed(made, -1, replace(closing, x=Read(queries, "f32")))) == others


@pytest.mark.parametrize(
    "other",
    [
        lambda attention: replace(attention, k=replace(attention.k, table="another")),
        lambda attention: replace(attention, q=replace(attention.q, tensor="another")),
        lambda attention: replace(attention, q=replace(attention.q, row=1)),
        lambda attention: replace(attention, rows=2),
        lambda attention: replace(attention, heads=2),
        lambda attention: replace(attention, groups=1),
        lambda attention: replace(attention, dk=128),
        lambda attention: replace(attention, dst=replace(attention.dst, f32=False)),
    ],
)
def test_an_attention_of_something_else_is_apart(other) -> None:
    made = schedule(NORMED, "decode", lane())
    first, *others = places(made)
    attention = made.steps[first.start + 1].launch
    assert isinstance(attention, Attention)
    assert places(changed(made, first.start + 1, other(attention))) == others


def test_a_member_of_a_batch_that_reads_something_else_keeps_all_apart() -> None:
    made = schedule(NORMED, "batch", lane())
    first, *others = places(made)
    batch = made.steps[first.start + 1].launch
    assert isinstance(batch, Sequences)
    *same, last = batch.members
    assert isinstance(last, Attention)
    unlike = replace(batch, members=(*same, replace(last, q=replace(last.q, tensor="another"))))
    assert places(changed(made, first.start + 1, unlike)) == others
    fewer = replace(batch, members=tuple(same))
    assert places(changed(made, first.start + 1, fewer)) == others


# --- tables of joins ------------------------------------------------------------------------------

GLU_DOWN = (
    Taken("glu_bf16", {"x": "x", "y": "h", "k": "width", "n": "ff"}),
    Taken("linear_bf16", {"x": "h", "k": "ff", "n": "width"}),
)
"""A gated unit and the product of it, sums of which are as wide as what it read."""


def set_of(*joinings: Joining, monkeypatch: pytest.MonkeyPatch) -> KernelSet:
    """The kernels of bfloat16 tables with other joins."""
    monkeypatch.setattr(catalog, "_JOININGS", joinings)
    catalog.cuda_kernels.cache_clear()
    try:
        return catalog.cuda_kernels("bf16")
    finally:
        monkeypatch.undo()
        catalog.cuda_kernels.cache_clear()


def joining(entry: str = "glu_down", taken: tuple[Taken, ...] = GLU_DOWN, **others) -> Joining:
    made = {"suits": lambda _sizes, _cache: True, "handed": frozenset({"h"})} | others
    return Joining("some", entry, taken, geometry=Geometry((32, 1, 1), ()), **made)


def names_of(kernels: KernelSet, entry: str = "glu_down") -> list[str]:
    return [param.name for param in kernels.joins[entry].kernel.params]


def test_a_kernel_takes_what_is_neither_handed_nor_settled(monkeypatch) -> None:
    held = set_of(joining(), monkeypatch=monkeypatch)
    assert names_of(held) == ["x", "wg", "wu", "rows", "width", "ff", "act", "w", "y"]
    order = ("y", "x", "wg", "wu", "w", "width", "ff")
    held = set_of(joining(settled={"rows": 1, "act": 0}, order=order), monkeypatch=monkeypatch)
    assert names_of(held) == list(order)


@pytest.mark.parametrize(
    ("settled", "fires"),
    [
        ({"rows": 1}, True),
        ({"rows": 1, "act": 0}, True),
        ({"rows": 2}, False),
        ({"act": 1}, False),
        ({"ff": 96}, True),
        ({"ff": ("width", "rows")}, False),
        ({"rows": ()}, True),
    ],
)
def test_a_number_that_is_settled_is_that_of_the_launch(settled, fires, monkeypatch) -> None:
    held = set_of(joining(settled=settled), monkeypatch=monkeypatch)
    found = places(schedule(NORMED, "decode", lane()), held)
    assert len(found) == (NORMED.layers if fires else 0)


def test_names_that_would_be_two_things_keep_launches_apart(monkeypatch) -> None:
    glu, down = GLU_DOWN
    unlike = replace(down, names={**down.names, "n": "ff"})
    held = set_of(joining(taken=(glu, unlike)), monkeypatch=monkeypatch)
    assert places(schedule(NORMED, "decode", lane()), held) == []


def test_the_kernel_for_most_launches_is_taken(monkeypatch) -> None:
    norm = Taken("add_norm", {"w": "gain", "y": "n", "unit": "width"})
    glu = replace(GLU_DOWN[0], names={**GLU_DOWN[0].names, "x": "n"})
    three = joining("norm_glu_down", (norm, glu, GLU_DOWN[1]), handed=frozenset({"n", "h"}))
    made = schedule(NORMED, "decode", lane())
    for rows in ((joining(), three), (three, joining())):
        held = set_of(*rows, monkeypatch=monkeypatch)
        assert [len(each) for each in places(made, held)] == [3] * NORMED.layers
    never = replace(three, suits=lambda _sizes, _cache: False)
    held = set_of(joining(), never, monkeypatch=monkeypatch)
    assert [len(each) for each in places(made, held)] == [2] * NORMED.layers


# --- what a plan says of them ---------------------------------------------------------------------


@pytest.mark.parametrize("form", ["decode", "batch"])
def test_what_is_joined_moves_and_computes_what_it_did_apart(form: FormName) -> None:
    on = replace(lane(), kernels=turning())
    apart = replace(on, kernels=replace(on.kernels, joins={}))
    graph = step_graph(
        NORMED, form, formats=Formats("bf16", "f32"), rows=ROWS[form], capacity=NORMED.context,
        row_param=None,
    )  # fmt: skip
    steps = [PlannedStep(graph, each.lower(graph), each, NORMED.context) for each in (on, apart)]
    costs = [Cost.of(launch_costs(step, 40)) for step in steps]
    assert costs[0] == costs[1]
    counts = [summarize(step, 40) for step in steps]
    assert counts[1].launches - counts[0].launches == NORMED.layers
    assert counts[0].census["attention_turned"] == NORMED.layers
    for count, step in zip(counts, steps, strict=True):
        assert len(launch_costs(step, 40)) == count.launches
        assert sum(count.census.values()) == sum(count.layers) + count.outside == count.launches
        assert set(count.layers) == {count.per_layer}


def test_a_plan_names_the_kernels_that_are_called() -> None:
    on = lane()
    made = schedule(NORMED, "decode", on)
    told = report(made, calls(made, on.kernels, NORMED.context))
    manifest = emitted(NORMED, on)
    assert told["launches"] == len(told["kernels"]) == len(manifest.programs["decode"].calls)
    assert Counter(told["kernels"])["attention_turned_n"] == NORMED.layers


def test_a_manifest_with_such_calls_is_accepted() -> None:
    made = emitted(NORMED, lane())
    modules = {name: Module(name, "0" * 64) for name in made.modules}
    assert check(replace(made, modules=modules)) == []
