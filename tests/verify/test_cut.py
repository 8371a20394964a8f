import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from bedstone.errors import ManifestError
from bedstone.spec.codec import parse, parse_value, serialize
from bedstone.verify import check, verify
from bedstone.verify.cut import CUT_RULES, cut
from bedstone.verify.cut.identity import cut_id
from conformance_cases import accepted_text, normalized_text, patched
from pipeline_manifests import pipeline_manifest, some
from symbolic_runs import Symbols, run_stages, run_whole

UNCUT = "16_uncut"


def whole(*mutations, base=UNCUT):
    """A verified manifest: an accepted one after `op path value` mutations."""
    steps = [
        {"op": op, "path": path, **({"value": value[0]} if value else {})}
        for op, path, *value in mutations
    ]
    return verify(parse_value(patched(json.loads(accepted_text(base)), steps)))


def aside(op, place, name):
    """A call of `op` on the buffer `name` at the same place of both programs."""
    call = {"op": op, "args": [{"buf": name}]}
    return [
        ("add", f"/programs/{program}/calls/{place}", call) for program in ("decode", "prefill")
    ]


def rules(error):
    return [line.rsplit("[", 1)[1].rstrip("]") for line in str(error.value).splitlines()[1:]]


def test_the_worked_example_has_the_reference_stages_and_id():
    stages = cut(whole(), [2])
    assert {stage.cut.id for stage in stages} == {"30f717f86441477b"}
    names = ("17_cut_stage0", "18_cut_stage1")
    assert [serialize(stage) for stage in stages] == [normalized_text(name) for name in names]


def test_the_id_is_fnv1a_of_the_text_and_the_points():
    assert cut_id(b"", []) == "cbf29ce484222325"
    assert cut_id(b"a", []) == "af63dc4c8601ec8c"
    assert cut_id(b"", [1]) == cut_id(bytes([1, 0, 0, 0, 0, 0, 0, 0]), [])


@pytest.mark.parametrize(
    ("at", "rule", "words"),
    [
        ([], "K-points", "cut points [], expected one at least, increasing, the first above 0"),
        ([0], "K-points", "cut points [0]"),
        ([2, 2], "K-points", "cut points [2, 2]"),
        ([3, 1], "K-points", "cut points [3, 1]"),
        ([-1], "K-points", "cut points [-1]"),
        ([4], "K-inside", "program `decode` has 4 calls; it cannot be cut before call 4"),
        ([1, 9], "K-inside", "cannot be cut before call 9"),
    ],
)
def test_cut_points_lie_between_calls(at, rule, words):
    with pytest.raises(ManifestError) as error:
        cut(whole(), at)
    assert set(rules(error)) == {rule}
    assert words in str(error.value)


def test_a_stage_a_topology_and_a_manifest_nobody_drives_are_not_cut():
    for base, rule in (("17_cut_stage0", "K-stage"), ("07_peers", "K-topology")):
        with pytest.raises(ManifestError) as error:
            cut(whole(base=base), [1])
        assert rule in rules(error)
    with pytest.raises(ManifestError) as error:
        cut(whole(base="02_impl"), [1])
    assert rules(error) == ["K-batch"]


def test_only_a_workspace_travels():
    with pytest.raises(ManifestError) as error:
        cut(
            whole(
                ("replace", "/buffers/hidden/kind", "carry"),
            ),
            [2],
        )
    assert set(rules(error)) == {"K-workspace", "K-results"}
    assert (
        "program `decode`: carry buffer `hidden` is live across the cut before call 2; only a "
        "workspace travels" in str(error.value)
    )
    assert "program `decode` call 0 writes carry buffer `hidden` before the last stage" in str(
        error.value
    )


def test_outputs_come_from_the_last_stage():
    early = {"op": "head", "args": [{"buf": "hidden"}, {"buf": "head"}, {"buf": "next"}]}
    both = [("add", f"/programs/{name}/calls/1", early) for name in ("decode", "prefill")]
    with pytest.raises(ManifestError) as error:
        cut(whole(*both), [3])
    assert rules(error) == ["K-results", "K-results"]
    assert "program `decode` call 1 writes output buffer `next`" in str(error.value)


def test_a_stage_carries_only_what_it_uses():
    stash = {"dtype": "bf16", "shape": ["tokens", 32], "kind": "workspace"}
    op = {
        "params": ["in buffer<bf16>", "out buffer<bf16>"],
        "impl": {
            "launches": [{"module": "k", "entry": "copy", "block": [1, 1, 1], "grid": [1, 1, 1]}]
        },
    }
    mutations = [("add", "/buffers/stash", stash), ("add", "/ops/copy", op)]
    for program in ("decode", "prefill"):
        calls = f"/programs/{program}/calls"
        out = {"op": "copy", "args": [{"buf": "hidden"}, {"buf": "stash"}]}
        back = {"op": "copy", "args": [{"buf": "stash"}, {"buf": "hidden"}]}
        mutations += [("add", f"{calls}/1", out), ("add", f"{calls}/4", back)]
    manifest = whole(*mutations)
    with pytest.raises(ManifestError) as error:
        cut(manifest, [2, 3])
    assert rules(error) == ["K-through"]
    assert "stage 1: `stash` passes through untouched" in str(error.value)
    assert len(cut(manifest, [2])) == 2


def test_a_state_region_belongs_to_one_stage():
    same = [
        ("replace", f"/programs/{name}/calls/2/args/5/state", "kv0")
        for name in ("decode", "prefill")
    ]
    gone = [("remove", "/states/kv1")]
    with pytest.raises(ManifestError) as error:
        cut(whole(*same, *gone), [2])
    assert rules(error) == ["K-owner"]
    assert "state `kv0`+0 is touched by stages 0 and 1" in str(error.value)
    apart = [
        ("add", f"/programs/{name}/calls/2/args/5/offset", 4096) for name in ("decode", "prefill")
    ]
    stages = cut(whole(*same, *gone, *apart), [2])
    assert [list(stage.states) for stage in stages] == [["kv0"], ["kv0"]]


def test_a_value_kept_between_runs_belongs_to_one_stage():
    kept = {"dtype": "bf16", "shape": ["tokens", 32], "kind": "inout"}
    launch = {"module": "k", "entry": "e", "block": [1, 1, 1], "grid": [1, 1, 1]}
    mutations = [
        ("add", "/buffers/kept", kept),
        ("add", "/ops/get", {"params": ["in buffer<bf16>"], "impl": {"launches": [launch]}}),
        ("add", "/ops/put", {"params": ["out buffer<bf16>"], "impl": {"launches": [launch]}}),
        *aside("get", 0, "kept"),
        *aside("put", "-", "kept"),
    ]
    with pytest.raises(ManifestError) as error:
        cut(whole(*mutations), [3])
    assert rules(error) == ["K-owner"]
    assert "buffer `kept` is touched by stages 0 and 1; a buffer kept between runs" in str(
        error.value
    )


def test_a_table_over_a_dropped_state_is_pointed_at_one_of_its_sort():
    tail = cut(whole(), [2])[1]
    assert {tail.buffers[name].domain.index_into for name in ("slots", "pages")} == {"kv1"}


def test_a_domain_goes_where_no_state_or_buffer_of_it_is_left():
    seen = {"dtype": "i64", "shape": ["tokens"], "kind": "input", "domain": {"index_into": "emb"}}
    op = {
        "params": ["in buffer<i64>"],
        "impl": {
            "launches": [{"module": "k", "entry": "e", "block": [1, 1, 1], "grid": [1, 1, 1]}]
        },
    }
    tail = cut(
        whole(
            ("add", "/buffers/seen", seen),
            ("add", "/ops/look", op),
            ("add", "/programs/decode/calls/3", {"op": "look", "args": [{"buf": "seen"}]}),
        ),
        [2],
    )[1]
    assert tail.buffers["seen"].domain is None


def test_a_var_stays_only_where_it_sizes_something():
    wide = {"ceil_div": ["far", 4]}
    head, tail = cut(
        whole(
            ("add", "/vars/far", {"max": 8}), ("replace", "/ops/embed/impl/launches/0/grid/0", wide)
        ),
        [2],
    )
    assert ("far" in head.vars, "far" in tail.vars) == (True, False)


def test_a_stage_that_breaks_a_rule_says_which_stage():
    # Nothing that stage 0 keeps writes the carry it reads.
    carry = {"dtype": "bf16", "shape": [4], "kind": "carry"}
    launch = {"module": "k", "entry": "e", "block": [1, 1, 1], "grid": [1, 1, 1]}
    with pytest.raises(ManifestError) as error:
        cut(
            whole(
                ("add", "/buffers/memo", carry),
                (
                    "add",
                    "/ops/get",
                    {"params": ["in buffer<bf16>"], "impl": {"launches": [launch]}},
                ),
                (
                    "add",
                    "/ops/put",
                    {"params": ["out buffer<bf16>"], "impl": {"launches": [launch]}},
                ),
                *aside("get", 0, "memo"),
                *aside("put", "-", "memo"),
            ),
            [3],
        )
    assert rules(error) == ["U1"]
    assert "stage 0: " in str(error.value)
    assert "`memo`" in str(error.value)


def test_load_programs_keep_the_calls_a_stage_needs_across_programs():
    stages = cut(verify(parse_value(_derived())), [1])
    kept = [
        {name: [call.label for call in program.calls] for name, program in stage.programs.items()}
        for stage in stages
    ]
    assert kept[0] == {"a": ["base"], "b": ["first"], "step": ["c0"]}
    assert kept[1] == {"a": ["base"], "c": ["second"], "step": ["c1"]}


def _derived():
    """`base` feeds both later derive programs; each stage reads one of them."""
    carry = {"dtype": "f32", "shape": [4], "kind": "carry"}
    launch = {"module": "k", "entry": "e", "block": [1, 1, 1], "grid": [1, 1, 1]}
    work = {"dtype": "f32", "shape": [4], "kind": "workspace"}
    return {
        "schema_version": 7,
        "model": "derived",
        "vars": {"tokens": {"max": 4, "axis": "rows"}},
        "buffers": {
            "w": {"dtype": "f32", "shape": [4], "kind": "weight", "bind": [{"tensor": "w"}]},
            "zero": carry,
            "one": carry,
            "two": carry,
            "h": work,
            "y": work | {"kind": "output"},
        },
        "modules": {"k": {"source": "k.so", "sha256": "a" * 64}},
        "ops": {
            "f": {
                "params": ["in buffer<f32>", "out buffer<f32>"],
                "impl": {"launches": [launch]},
            },
            "g": {
                "params": ["in buffer<f32>", "in buffer<f32>", "out buffer<f32>"],
                "impl": {"launches": [launch]},
            },
        },
        "programs": {
            "a": {"derive": True, "calls": [_call("base", "f", "w", "zero")]},
            "b": {"derive": True, "calls": [_call("first", "f", "zero", "one")]},
            "c": {"once": True, "calls": [_call("second", "f", "zero", "two")]},
            "step": {
                "batch": {"groups": 1, "rows": "tokens"},
                "calls": [_call("c0", "f", "one", "h"), _call("c1", "g", "h", "two", "y")],
            },
        },
    }


def _call(label, op, *names):
    return {"label": label, "op": op, "args": [{"buf": name} for name in names]}


def test_every_cut_rule_is_broken_by_some_test():
    broken = {
        "K-topology", "K-stage", "K-points", "K-batch", "K-inside",
        "K-workspace", "K-results", "K-through", "K-owner",
    }  # fmt: skip
    assert {rule.id for rule in CUT_RULES} == broken


def test_random_pipelines_do_what_the_whole_does():
    outcomes = Counter()
    for seed in range(200):
        rng = np.random.default_rng(seed)
        verified = verify(parse_value(pipeline_manifest(rng)))
        calls = [len(p.calls) for p in verified.manifest.programs.values() if p.batch]
        points = range(1, min(calls))
        at = sorted(some(rng, points, rng.choice((1, 1, 2))))
        try:
            stages = cut(verified, at)
        except ManifestError as error:
            outcomes.update(line.rsplit("[", 1)[1] for line in str(error).splitlines()[1:])
            continue
        outcomes["cut"] += 1
        _same_computation(verified.manifest, stages)
    assert outcomes["cut"] > 100
    assert {"K-owner]", "K-through]"} < set(outcomes)


def _same_computation(manifest, stages):
    symbols, steps = Symbols(), ["prefill", "decode", "decode", "prefill"]
    outputs, carries, states = run_whole(manifest, steps, symbols)
    staged_outputs, staged_carries, staged_states = run_stages(manifest, stages, steps, symbols)
    # A stage has only what it uses: an inout buffer may live in an earlier one.
    for want, got in zip(outputs, staged_outputs, strict=True):
        assert {name: want[name] for name in got if name in want} == {
            name: value for name, value in got.items() if name in want
        }
        assert "next" in got
    assert carries == carries | staged_carries
    assert states == staged_states
    for stage in stages:
        assert check(stage) == []
        assert parse(serialize(stage)) == stage
        assert stage.cut == replace(stages[0].cut, stage=stage.cut.stage)
