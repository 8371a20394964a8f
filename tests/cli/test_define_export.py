"""`bedstone define export`: our kernels as a set that check and bench take."""

import json
import re

import pytest

from bedstone.prove.trace_set import read_trace_set
from bedstone.target.cpu import runnable
from bedstone.target.features import read_features
from bedstone.target.hardware import read_sets
from command_line import bedstone

ONE = ("--config", "smollm2-135m", "--kernel", "add_norm")
SETS = runnable(read_sets(), read_features())


def test_every_set_this_machine_runs_has_a_solution(tmp_path):
    ended = bedstone("define", "export", tmp_path / "set", *ONE)
    assert ended.code == 0, ended.err
    read = read_trace_set(tmp_path / "set")
    (name,) = read.definitions
    assert name.startswith("add_norm_width576_")
    assert {s.spec.target_hardware for s in read.solutions[name]} == {(s,) for s in SETS}
    assert [dict(on.axes) for on in read.workloads[name]] == [
        {"rows": 1},
        {"rows": 37},
        {"rows": 3},
    ]
    assert ended.out == f"1 definition, {len(SETS)} solutions, 3 workloads\n"
    assert bedstone("define", "check", tmp_path / "set", "--no-hints").out.endswith(", 0 refused\n")


def test_a_kernel_that_there_is_not_leaves_no_set(tmp_path):
    ended = bedstone("define", "export", tmp_path / "set", *ONE[:2], "--kernel", "nomr")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "bedstone: `--kernel nomr`: no entry is called so\n"
    assert list(tmp_path.iterdir()) == []


def test_a_gpu_set_needs_no_gpu_to_be_exported(tmp_path):
    patterns = ("--kernel", "add_norm", "--kernel", "linear_q_bf16")
    ended = bedstone("define", "export", tmp_path / "set", *ONE[:2], *patterns,
                     "--target", "hopper", "--json")  # fmt: skip
    assert ended.code == 0, ended.err
    read = read_trace_set(tmp_path / "set")
    assert json.loads(ended.out)["definitions"] == len(read.definitions)
    every = [solution for each in read.solutions.values() for solution in each]
    assert {s.spec.languages for s in every} == {("cuda",)}
    names = [s.name for s in every]
    assert len(names) == len(set(names))
    assert any(re.fullmatch(r"add_norm_width576_\w+\.hopper", name) for name in names)
    assert any(re.fullmatch(r"linear_q_bf16_\w+\.batch\.hopper", name) for name in names)
    assert bedstone("define", "check", tmp_path / "set", "--no-hints").out.endswith(", 0 refused\n")


def test_a_folder_that_holds_something_is_left_alone_unless_told(tmp_path):
    (tmp_path / "mine").write_text("")
    refused = bedstone("define", "export", tmp_path, *ONE)
    assert refused.code != 0
    assert "expected an empty folder" in refused.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    told = bedstone("define", "export", tmp_path, *ONE, "--replace")
    assert told.code == 0, told.err
    assert {"mine", "definitions", "solutions", "workloads"} <= {p.name for p in tmp_path.iterdir()}


def test_an_earlier_export_is_replaced_but_for_its_traces(tmp_path):
    folder = tmp_path / "set"
    bedstone("define", "export", folder, *ONE, "--kernel", "silu", "--target", "cpu-generic")
    (folder / "traces").mkdir()
    (folder / "traces" / "kept").write_text("")
    ended = bedstone("define", "export", folder, *ONE, "--target", "cpu-generic")
    assert ended.code == 0, ended.err
    assert len(read_trace_set(folder).definitions) == 1
    assert (folder / "traces" / "kept").exists()


@pytest.mark.slow
def test_bench_runs_what_was_exported(tmp_path, monkeypatch):
    monkeypatch.setenv("BEDSTONE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "set"
    bedstone("define", "export", folder, *ONE, "--target", "cpu-generic", "--json")
    ended = bedstone("define", "bench", folder, "--trials", 2, "--warmup", 1, "--iterations", 5,
                     "--warm", "--json")  # fmt: skip
    assert ended.code == 0, ended.out
    traces = json.loads(ended.out)["traces"]
    assert [t["evaluation"]["status"] for t in traces] == ["PASSED"] * 3
    assert {t["solution"] for t in traces} == {f"{t['definition']}.cpu-generic" for t in traces}
    assert list((tmp_path / "cache" / "solutions").glob("*.so"))
