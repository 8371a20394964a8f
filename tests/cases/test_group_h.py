"""Reported cases about targets: what a set of kernels serves, and what it must refuse."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from bedstone.build.kernels import require_kernels
from bedstone.build.launches import calls
from bedstone.build.report import report
from bedstone.build.route import subject
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.checkpoint.shapes import ShapeCheckpoint, shape_checkpoint
from bedstone.errors import DefinitionError, KernelError, TargetError, WeightError
from bedstone.lane.cpu import CpuShim
from bedstone.lane.entries import entry
from bedstone.lane.errors import NoLaunchError
from bedstone.lane.launch import Launch
from bedstone.library.catalog import cpu_kernels
from bedstone.spec.axes import axis_values
from bedstone.spec.manifest import Impl, KernelLaunch, Manifest, Op
from bedstone.spec.target import ModelRecord, ModelType, Routing
from bedstone.target.audit import Absence, Built, Wanted, audit, failures
from bedstone.target.blob import Blob
from bedstone.target.models import Model
from bedstone.target.resolve import Resolution, resolve
from definitions import definition
from lane_graphs import LLAMA, config, graph_of, lowered, misses, without


def resolved(shape: ShapeCheckpoint, row: ModelType) -> Resolution:
    record = ModelRecord(routing=Routing(model_types=(row,)))
    return resolve({"one": Model("one", Path("one"), record, "one", ())}, subject(shape))


def shaped(**changes: object) -> ShapeCheckpoint:
    model = config("LlamaForCausalLM", hidden=64, intermediate=128, **changes)
    return ShapeCheckpoint("small", model, "bf16")


ROW = ModelType(
    model_type="llama", hidden_size=64, intermediate_size=128, num_attention_heads=4,
    num_key_value_heads=2, head_dim=16,
)  # fmt: skip


def test_h01_the_same_head_geometry_with_another_hidden_size_is_refused():
    assert resolved(shaped(), ROW).require().model == "one"
    larger = shaped()
    larger = replace(larger, config=replace(larger.config, hidden=96, intermediate=192))
    with pytest.raises(TargetError) as refused:
        resolved(larger, ROW).require()
    assert "hidden_size is 96, wanted 64; intermediate_size is 192, wanted 128" in str(
        refused.value
    )


def test_h02_kernels_for_a_fixed_count_of_heads_serve_no_other():
    hybrid = shape_checkpoint("qwen3-next-80b-a3b")
    kind = subject(hybrid).model_type
    with pytest.raises(TargetError, match="linear_num_value_heads is 32, wanted 48"):
        resolved(hybrid, ModelType(model_type=kind, linear_num_value_heads=48)).require()
    fitting = ModelType(model_type=kind, linear_num_value_heads=32)
    assert resolved(hybrid, fitting).require().row == fitting


def test_h02_a_definition_refuses_another_count_than_its_own_by_name():
    fixed = definition(axes={"n": {"type": "var"}, "Hv": {"type": "const", "value": 32}})
    assert axis_values(fixed, {"n": 1, "Hv": 32})["Hv"] == 32
    with pytest.raises(DefinitionError, match="`double_n` fixes axis `Hv` at 32, found 48"):
        axis_values(fixed, {"n": 1, "Hv": 48})


def test_h04_a_slower_path_is_never_silent():
    graph = graph_of(LLAMA, "decode")
    schedule = lowered(graph, shim=without("glu"))
    wanted = misses(schedule, "glu")
    assert wanted
    assert {(miss.reason, miss.why) for miss in wanted} == {("shim", "taken away")}
    listed = report(schedule, calls(schedule, cpu_kernels(), 64))["misses"]
    assert {"op", "rule", "reason", "why"} <= listed[0].keys()
    assert [miss for miss in listed if miss["rule"] == "glu"] == [asdict(miss) for miss in wanted]


def test_h04_a_way_round_is_taken_only_where_one_is_declared():
    """Strictly, a kernel that is missing fails the set: a reason has to stand in its record."""
    scan = Wanted("scan", "Scan", "each op is launched by itself", None, None)
    (missing,) = failures(audit([scan], Built({}, {}), []))
    assert "without it `Scan` does not fire and each op is launched by itself" in missing.note
    allowed = Absence("scan", "the library X is not built here", "KERNEL.toml", own=True)
    (excused,) = audit([scan], Built({}, {}), [allowed])
    assert (excused.good, excused.status) == (True, "expected_absent")
    assert excused.note == "the library X is not built here (KERNEL.toml)"


def test_h04_what_a_manifest_calls_has_no_way_round():
    launch = KernelLaunch("x", "scan", (1, 1, 1), (1, 1, 1))
    manifest = Manifest("m", {}, {}, {"scan": Op((), Impl((launch,)))}, {})
    with pytest.raises(KernelError, match="`scan`: never built"):
        require_kernels(manifest, Built({}, {}), cpu_kernels())


def test_h06_a_name_is_matched_exactly_and_the_nearest_is_shown():
    blob = Blob("norm", "shared_object", "generic", "0" * 64, {"RmsNorm": None})
    wanted = Wanted("RMSNorm", "Norm", None, None, None)
    (finding,) = audit([wanted], Built({"norm": blob}, {}), [])
    assert finding.status == "never_built"
    assert "`RMSNorm`" in str(finding)
    assert "did you mean `RmsNorm`?" in finding.note


class NoDecode:
    """A lane whose attention takes many rows at once and no single one."""

    def lacks(self, launch: Launch) -> str | None:
        one_row = getattr(launch, "rows", 0) == 1
        if entry(launch).startswith("attention") and one_row:
            return "no attention of one row with 6 heads a group"
        return CpuShim(cpu_kernels()).lacks(launch)


def test_h07_a_form_without_a_kernel_is_refused_before_any_other_runs():
    ratio = config("LlamaForCausalLM", heads=12, kv_heads=2, hidden=192)
    assert lowered(graph_of(ratio, "chunk"), shim=NoDecode())
    with pytest.raises(NoLaunchError, match="6 heads a group"):
        lowered(graph_of(ratio, "decode"), shim=NoDecode())


def test_h08_a_mix_the_config_does_not_spell_out_is_refused_by_name(tmp_path):
    fields = {
        "architectures": ["LlamaForCausalLM"], "hidden_size": 8, "intermediate_size": 8,
        "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 8,
        "max_position_embeddings": 8,
        "quantization_config": {
            "quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
            "quantized_layers": {"l.0.up": "NVFP4", "l.0.down": "FP8"}, "ignore": ["lm_head"],
        },
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(fields))
    (tmp_path / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    with pytest.raises(WeightError, match="`modelopt`"):
        open_checkpoint(str(tmp_path))
