import json

import pytest
from safetensors.torch import save_file

from bedstone.prove.trace_set import (
    append_traces,
    append_workloads,
    read_trace_set,
    write_definition,
    write_solution,
)
from bedstone.spec.trace import Trace
from bedstone.spec.workload import Stored, Workload
from command_line import bedstone
from definitions import definition, definition_value, solution, workload
from prove.outcomes import passed

QUICK = ("--trials=2", "--warmup=1", "--iterations=3", "--samples=1", "--warm")


@pytest.fixture
def data_set(tmp_path):
    of = definition()
    write_definition(tmp_path, of)
    append_workloads(tmp_path, of, [workload("small", n=16), workload("large", n=64)])
    write_solution(tmp_path, of, solution("def run(x):\n    return x + x\n", name="right"))
    write_solution(tmp_path, of, solution("def run(x):\n    return x\n", name="wrong"))
    return tmp_path


@pytest.fixture
def nearly_json(tmp_path):
    path = tmp_path / "nearly.json"
    path.write_text(json.dumps(definition_value(), indent=1).replace('",\n', '"\n', 1))
    return path


def test_list_counts_what_a_set_holds(data_set):
    ended = bedstone("define", "list", data_set)
    assert ended.code == 0
    assert "double_n    scale    2          2          0" in ended.out
    assert ended.out.endswith("1 definition, 2 solutions, 2 workloads, 0 traces\n")
    value = json.loads(bedstone("define", "list", data_set, "--json").out)
    assert value["definitions"][0]["solutions"] == 2


def test_list_tells_of_what_it_cannot_read(data_set):
    (data_set / "definitions" / "bad.json").write_text("{")
    ended = bedstone("define", "list", data_set)
    assert "bad.json: not JSON" in ended.err


def test_show_prints_a_definition_of_a_set_or_a_file(data_set):
    ended = bedstone("define", "show", data_set, "double_n", "--reference")
    assert "  x  [n]  float32" in ended.out
    assert "return 2 * x" in ended.out
    path = data_set / "definitions" / "scale" / "double_n.json"
    value = json.loads(bedstone("define", "show", path, "--json").out)
    assert value["definition"] == definition_value()
    assert bedstone("define", "show", data_set).code == 2


def test_check_lists_every_finding_and_refuses_errors(data_set):
    assert bedstone("define", "check", data_set / "definitions").code == 0
    bad = data_set / "bad.json"
    bad.write_text(json.dumps(definition_value(inputs=..., op_type=...)))
    ended = bedstone("define", "check", bad)
    assert ended.code == 1
    assert f"{bad}: error: /inputs: expected an object" in ended.out
    assert f"{bad}: warning: /op_type" in ended.out
    assert ended.out.endswith("1 document, 1 refused\n")
    value = json.loads(bedstone("define", "check", bad, "--json").out)
    assert value["documents"][0]["findings"][0]["severity"] == "warning"


def test_repairs_are_made_on_request_and_listed(nearly_json):
    refused = bedstone("define", "check", nearly_json)
    assert refused.code == 1
    assert "line 3 column" in refused.out
    mended = bedstone("define", "check", nearly_json, "--repair")
    assert mended.code == 0
    assert "repaired: line 2 column 20: a missing comma was added" in mended.out


def test_convert_writes_another_dialect_and_lists_losses(tmp_path):
    axes = {"n": {"type": "var"}, "m": {"type": "expr", "expression": "n * 2"}}
    path = tmp_path / "d.json"
    path.write_text(json.dumps(definition_value(axes=axes)))
    ended = bedstone("define", "convert", path, "--to", "fib")
    assert ended.code == 0
    assert json.loads(ended.out)["constraints"] == ["m == n * 2"]
    assert "lost: /axes/m: a computed axis becomes a variable one" in ended.err
    out = tmp_path / "out.json"
    assert bedstone("define", "convert", path, "--to", "sol", "--out", out).out == ""
    assert json.loads(out.read_text())["axes"] == axes
    assert bedstone("define", "convert", path, "--to", "xml").code == 2


def test_convert_exits_1_where_readers_would_refuse(tmp_path):
    path = tmp_path / "d.json"
    path.write_text(json.dumps(definition_value(reference="...")))
    ended = bedstone("define", "convert", path, "--to", "fib")
    assert ended.code == 1
    assert "refused: /reference: a draft reference" in ended.err


def test_a_folder_that_is_no_set_is_not_benched(tmp_path):
    ended = bedstone("define", "bench", tmp_path)
    assert ended.code == 2
    assert "holds no Definitions" in ended.err


@pytest.mark.slow
def test_bench_adds_traces_and_exits_1_where_one_did_not_pass(data_set):
    ended = bedstone("define", "bench", data_set, *QUICK, "--json")
    assert ended.code == 1
    value = json.loads(ended.out)
    statuses = {
        (t["solution"], t["workload"]["uuid"]): t["evaluation"]["status"] for t in value["traces"]
    }
    assert statuses == {
        ("right", "small"): "PASSED",
        ("right", "large"): "PASSED",
        ("wrong", "small"): "INCORRECT_NUMERICAL",
        ("wrong", "large"): "INCORRECT_NUMERICAL",
    }
    assert value["skipped"] == []
    assert len(read_trace_set(data_set).every_trace()) == 4
    assert value["traces"][0]["evaluation"]["record"]["baseline"] == "reference"

    again = bedstone("define", "bench", data_set, *QUICK, "--resume")
    assert (again.code, again.out.splitlines()[-1]) == (0, "0 runs, 0 passed")

    only = bedstone("define", "bench", data_set, *QUICK, "--solution", "right")
    assert only.code == 0
    assert only.out.splitlines()[-1] == "2 runs, 2 passed"
    assert "double_n    n=16   right     PASSED" in only.out


@pytest.mark.slow
def test_bench_says_why_it_skips_a_workload(data_set):
    stored = {"x": Stored("blob/x.safetensors", "x")}
    append_workloads(data_set, definition(), [Workload({"n": 8}, stored, "stored")])
    ended = bedstone("define", "bench", data_set, *QUICK, "--solution", "right")
    assert ended.code == 1
    assert "skipped: double_n stored: workload `stored`: `blob/x.safetensors`" in ended.err
    assert bedstone(
        "define", "bench", data_set, *QUICK, "--solution", "right", "--stand-in"
    ).out.endswith("3 runs, 3 passed\n")


@pytest.mark.slow
def test_bench_reads_stored_inputs_from_the_set(data_set):
    import torch

    (data_set / "blob").mkdir()
    save_file({"x": torch.arange(1.0, 9.0)}, data_set / "blob" / "x.safetensors")
    stored = {"x": Stored("blob/x.safetensors", "x")}
    append_workloads(data_set, definition(), [Workload({"n": 8}, stored, "stored")])
    ended = bedstone("define", "bench", data_set, *QUICK, "--solution", "right", "--json")
    assert ended.code == 0
    fresh = {
        t["workload"]["uuid"]: t["evaluation"]["record"]["fresh_inputs"]
        for t in json.loads(ended.out)["traces"]
    }
    # the same stored values every time: a kept answer cannot be told from a new one
    assert fresh == {"small": True, "large": True, "stored": False}


def test_bench_refuses_a_device_it_does_not_have(data_set):
    assert bedstone("define", "bench", data_set, "--device", "tpu").code == 3


def ranked(data_set):
    of = definition()
    for name, milliseconds in (("right", 1.0), ("wrong", 3.0)):
        trace = Trace("double_n", workload("small", n=16), name, passed(milliseconds))
        append_traces(data_set, of, "tester", [trace])


def test_rank_orders_solutions_and_draws_a_page(data_set):
    ranked(data_set)
    page = data_set / "page.html"
    ended = bedstone("define", "rank", data_set, "--html", page)
    lines = ended.out.splitlines()
    assert lines[1].split() == ["double_n", "H200", "right", "1/1", "4x", "reference", "1"]
    assert lines[2].split()[2] == "wrong"
    assert "<svg" in page.read_text()
    value = json.loads(bedstone("define", "rank", data_set, "--hardware", "H200", "--json").out)
    assert [s["solution"] for s in value["standings"]] == ["right", "wrong"]


@pytest.mark.parametrize(
    ("arguments", "known"),
    [
        (("bench", "--solution", "rihgt"), "`right`, `wrong`"),
        (("bench", "--definition", "right"), "`double_n`"),
        (("rank", "--definition", "none"), "`double_n`"),
        (("rank", "--hardware", "H100"), "`H200`"),
    ],
)
def test_a_name_that_is_of_nothing_is_refused(data_set, arguments, known):
    ranked(data_set)
    command, option, name = arguments
    ended = bedstone("define", command, data_set, option, name)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"bedstone: `{option} {name}`: expected one of {known}\n"


def test_apply_names_the_best_and_why_not_the_others(data_set):
    ranked(data_set)
    ended = bedstone("define", "apply", data_set, "double_n", "--axis", "n=16", "--source")
    assert ended.code == 0
    assert ended.out.startswith("right: 1 ms on H200\n  not wrong  slower: 3 ms, not 1\n")
    assert "return x + x" in ended.out
    none = bedstone("define", "apply", data_set, "double_n", "--axis", "n=99")
    assert none.code == 1
    assert "not right  measured at other sizes: n=16" in none.out
    near = bedstone(
        "define", "apply", data_set, "double_n", "--axis", "n=99", "--policy=nearest", "--json"
    )
    assert json.loads(near.out)["measured_at"] == {"n": 16}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("double_n", "--axis", "n"), "`n` is no size"),
        (("double_n", "--axis", "m=4"), "has the variable axis `n`"),
        (("nothing", "--axis", "n=4"), "has no definition `nothing`"),
        (("double_n", "--axis", "n=4"), "has Traces of none: expected `--hardware`"),
        (("double_n", "--axis", "n=4", "--policy", "any"), "`--policy` is `any`"),
    ],
)
def test_apply_says_what_it_must_be_told(data_set, arguments, message):
    ended = bedstone("define", "apply", data_set, *arguments)
    assert ended.code == 2
    assert message in ended.err
