"""FlashInfer-Bench's own definitions, workloads, tests and reader, against ours."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from bedstone.build.lane import target_lane
from bedstone.library.catalog import cpu_kernels
from bedstone.library.mathematics import define, family_of
from bedstone.prove.inputs.workload import Inputs
from bedstone.prove.interchange import write_for_flashinfer_bench
from bedstone.prove.own.planned import untouched
from bedstone.prove.own.problems import Written, own_problems
from bedstone.prove.reference import Reference
from bedstone.prove.tensors import as_bytes
from bedstone.prove.trace_set import (
    append_traces,
    append_workloads,
    read_trace_set,
    write_definition,
    write_solution,
)
from bedstone.spec.axes import bind
from bedstone.spec.dialect.document import parse_text
from bedstone.spec.dialect.emit_definition import emit_definition
from bedstone.spec.dialect.parse_definition import parse_definition
from bedstone.spec.dialect.trace import emit_trace
from bedstone.spec.trace import Trace
from bedstone.spec.workload import Workload
from bedstone.target.hardware import read_sets
from bedstone.target.sources import read_sources
from definitions import definition, solution, workload
from proposed_sizes import propose_sizes
from prove.outcomes import failed, passed

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def data_set(upstream):
    return read_trace_set(upstream / "flashinfer_trace")


def test_every_definition_and_workload_loads(data_set):
    assert data_set.unreadable == ()
    assert len(data_set.definitions) == 48
    assert sum(map(len, data_set.workloads.values())) == 663
    assert set(data_set.workloads) <= set(data_set.definitions)


def test_every_definition_and_workload_is_written_back_the_same(upstream, data_set):
    for path in sorted((upstream / "flashinfer_trace").rglob("definitions/*/*.json")):
        value = json.loads(path.read_bytes())
        read = parse_definition(value).require(path.stem)
        assert emit_definition(read, "fib").value == value
    for path in sorted((upstream / "flashinfer_trace").rglob("workloads/*/*.jsonl")):
        values = [json.loads(line) for line in path.read_text().splitlines()]
        traces = [Trace(path.stem, on) for on in data_set.workloads[path.stem]]
        assert [emit_trace(trace).value for trace in traces] == values


TOO_LARGE = "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048"
"""Its reference holds 1.4 billion weights in float32 three times over: 17 GB."""


@pytest.mark.slow
def test_every_reference_runs_on_made_inputs_twice_with_the_same_bits(data_set):
    ran = []
    for name, of in sorted(data_set.definitions.items()):
        if name == TOO_LARGE:
            continue
        sizes = propose_sizes(of)
        one, two = (_run(of, sizes) for _ in range(2))
        assert all(torch.equal(as_bytes(one[n]), as_bytes(two[n])) for n in of.outputs), name
        assert all(bool(one[n].float().isfinite().all()) for n in of.outputs), name
        ran.append(name)
    assert len(ran) == 47


def _run(of, sizes):
    inputs = Inputs(of, Workload(sizes, {}, "w"))
    values = inputs.trial(0, 0)
    shapes = [tuple(v.shape) if isinstance(v, torch.Tensor) else None for v in values.values()]
    assert bind(of, shapes) == inputs.values
    return Reference(of).run(values, inputs.values, 0)


@pytest.mark.slow
def test_upstreams_own_workloads_give_inputs_that_satisfy_every_constraint(data_set):
    """The smallest of each file; tensors that were stored apart are stood in for."""
    for name, workloads in sorted(data_set.workloads.items()):
        of = data_set.definitions[name]
        small = min(workloads, key=lambda on: sum(on.axes.values()))
        if max(small.axes.values()) < 4096 and name != TOO_LARGE:
            Inputs(of, small, stand_in=True).trial(0, 0)


# --- their reader and ours ---------------------------------------------------------------------

OWN = ("norm", "norm_q", "linear_f32", "linear_q_bf16", "rope_parts_n_p", "silu", "topk_b")
"""What has no bytes, nothing in place, no size that is a number or computed of a Workload's."""

SETS = read_sets()
SHARED = define(cpu_kernels().kernels["norm"], family_of("norm").sizes).name
"""What rounds nothing is one Definition on every device."""

READER = """
import json, sys, types
package = types.ModuleType("flashinfer_bench")
package.__path__ = [sys.argv[1] + "/flashinfer_bench"]
sys.modules["flashinfer_bench"] = package
from flashinfer_bench.data import TraceSet, save_jsonl_file
found = TraceSet.from_path(sys.argv[2])
(traces,) = found.traces.values()
save_jsonl_file(traces, sys.argv[3])
best = found.get_best_trace("double_n", axes={"n": 16})
print(json.dumps({
    "definitions": list(found.definitions),
    "solutions": [s.name for group in found.solutions.values() for s in group],
    "workloads": [t.workload.uuid for group in found.workloads.values() for t in group],
    "statuses": [t.evaluation.status.value for t in traces],
    "best": best.solution,
}))
"""


@pytest.mark.slow
def test_flashinfer_bench_reads_what_we_write_and_we_read_what_it_writes(upstream, tmp_path):
    of, one, on = definition(), solution("def run(x):\n    return x\n"), workload()
    outcomes = [
        passed(1.5, seed=3, timing={"method": "wall clock"}),
        failed("TIMEOUT"),
        failed("REWARD_HACK"),
        failed("INVALID_REFERENCE"),
    ]
    ours = tmp_path / "set"
    write_definition(ours, of)
    write_solution(ours, of, one)
    append_workloads(ours, of, [on])
    append_traces(ours, of, "tester", [Trace("double_n", on, one.name, e) for e in outcomes])
    theirs = tmp_path / "theirs.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", READER, str(upstream), str(ours), str(theirs)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "definitions": ["double_n"],
        "solutions": ["candidate"],
        "workloads": ["w"],
        # the two they have no word for are errors to them
        "statuses": ["PASSED", "TIMEOUT", "RUNTIME_ERROR", "RUNTIME_ERROR"],
        "best": "candidate",
    }
    path = ours / "traces" / "tester" / "scale" / "double_n.jsonl"
    path.write_text(theirs.read_text())
    again = read_trace_set(ours)
    assert again.unreadable == ()
    assert [trace.evaluation.outcome for trace in again.every_trace()][:2] == [
        e.outcome for e in outcomes[:2]
    ]


OWN_READER = """
import json, sys, types
package = types.ModuleType("flashinfer_bench")
package.__path__ = [sys.argv[1] + "/flashinfer_bench"]
sys.modules["flashinfer_bench"] = package
from flashinfer_bench.data import TraceSet
found = TraceSet.from_path(sys.argv[2])
print(json.dumps({
    "solutions": {n: sorted(s.name for s in each) for n, each in found.solutions.items()},
    "definitions": list(found.definitions),
    "traces": {n: len(each) for n, each in found.traces.items()},
    "languages": sorted({s.spec.language.value for g in found.solutions.values() for s in g}),
    "workloads": {n: len(each) for n, each in found.workloads.items()},
}))
"""


def read_by_them(upstream, folder):
    """What FlashInfer-Bench's own reader finds in a set."""
    done = subprocess.run(
        [sys.executable, "-c", OWN_READER, str(upstream), str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_flashinfer_bench_reads_our_own_kernels(upstream, tmp_path):
    ours, expected, written = tmp_path / "set", {}, Written()
    posed: dict[str, set[str]] = {}
    for target in ("cpu-generic", "hopper"):
        kernels, sources = target_lane(target, "quantized").kernels, read_sources(SETS[target])
        calls = [c for c in untouched((), kernels) if c.entry in OWN]
        for problem in own_problems(calls, kernels):
            written.add(ours, problem, [sources])
            names = [solution.name for solution in problem.solutions([sources])]
            expected.setdefault(problem.definition.name, []).extend(names)
            uuids = {on.uuid for on in problem.workloads}
            posed.setdefault(problem.definition.name, set()).update(uuids)
    found = read_by_them(upstream, ours)
    assert found["solutions"] == {name: sorted(each) for name, each in expected.items()}
    assert found["languages"] == ["cpp", "cuda"]
    assert found["workloads"] == {name: len(uuids) for name, uuids in posed.items()}
    assert sorted(expected[SHARED]) == [f"{SHARED}.cpu-generic", f"{SHARED}.hopper"]


OTHERS = ("q4_0", "q4_1", "q4_k", "q6_k", "f16", "f32")
"""Formats of which the test below says nothing: they are what `bf16` and `q8_0` are."""


@pytest.mark.slow
def test_flashinfer_bench_reads_all_of_a_converted_set(upstream, tmp_path):
    ours, theirs, written = tmp_path / "set", tmp_path / "theirs", Written()
    kernels, sources = cpu_kernels(), read_sources(SETS["cpu-generic"])
    calls = [c for c in untouched((), kernels) if not any(f"_{f}" in c.entry for f in OTHERS)]
    for problem in own_problems(calls, kernels):
        written.add(ours, problem, [sources])
    of, one = definition(), solution("def run(x):\n    return x\n")
    write_definition(ours, of)
    write_solution(ours, of, one)
    append_traces(ours, of, "tester", [Trace("double_n", workload(), one.name, passed(1.5))])
    converted = write_for_flashinfer_bench(read_trace_set(ours), theirs)
    found = read_by_them(upstream, theirs)
    assert sum(map(len, found["solutions"].values())) == converted.written["solution"]
    assert sum(found["workloads"].values()) == converted.written["workload"]
    assert found["traces"] == {"double_n": 1}
    # blocks of bytes are what they have no word for
    left_out = [line for line in converted.lines if line.startswith("left out: definition")]
    assert all("element type `uint8`" in line for line in left_out)
    assert converted.written["definition"] > 100
    # what is written in place is among what they read
    assert any(name.startswith("linear_bf16_rows_") for name in found["definitions"])


# --- their tests through a shim ----------------------------------------------------------------

SUITES = {
    "data": 35,
    "flashinfer_trace": 76,
    "compile/test_runnable.py": 13,
    "compile/test_python_builder.py": 2,
    "compile/test_utils.py": 4,
    "compile/test_tvm_ffi_builder.py": 10,
    "bench/test_benchmark_config.py": 6,
    "bench/test_isolated_runner.py": 8,
    "apply/test_key.py": 2,
}
"""Their tests of what we do too, and how many each holds."""

_NAMES = "packages are named by a sha256, without the Solution's name or a prefix"
_RUNNER = "needs CUDA, or a runner's private parts"
PINNED = {
    "data/test_solution.py::test_path_traversal_attack": "the wording of a message",
    "data/test_solution.py::test_absolute_path_attack": "the wording of a message",
    "compile/test_tvm_ffi_builder.py::test_no_sources": "the wording of a message",
    "compile/test_tvm_ffi_builder.py::test_cuda_add_one": _RUNNER,
    "compile/test_utils.py::test_create_package_name": _NAMES,
    "compile/test_utils.py::test_create_package_name_normalization": _NAMES,
    "compile/test_utils.py::test_create_package_name_deterministic": _NAMES,
    "bench/test_benchmark_config.py::test_benchmark_config_validation[rtol-0.0]":
        "a bound of 0 asks for equality",
    "bench/test_benchmark_config.py::test_benchmark_config_validation[atol-0.0]":
        "a bound of 0 asks for equality",
    "bench/test_isolated_runner.py::test_isolated_runner": _RUNNER,
    "bench/test_isolated_runner.py::test_isolated_runner_run_ref_and_solution_minimal": _RUNNER,
    "bench/test_isolated_runner.py::test_isolated_runner_with_scalar_input": _RUNNER,
    "bench/test_isolated_runner.py::test_isolated_worker_embeds_stdout": _RUNNER,
    "apply/test_key.py::test_applykey_json_roundtrip": "a key is not written anywhere",
}  # fmt: skip
"""Tests that hold us to something other than what the suites are about, and to what."""

NOT_OURS = {
    "tracing": "we collect no workloads from a running engine",
    "compile/test_torch_builder.py": "needs Ninja on the path, which PyTorch does not bring",
    "apply/test_config.py": "a Trace passes at its Workload's tolerance, not at one of a table",
}
"""Suites of what we do not have, and why."""


@pytest.mark.slow
def test_their_tests_pass_through_a_shim(upstream, tmp_path):
    suites = [str(upstream / "tests" / name) for name in SUITES]
    left_out = [f"--deselect=tests/{name}" for name in PINNED]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "-o", "addopts=",
         "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist",
         "--rootdir", str(upstream), *left_out, *suites],
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join([str(HERE / "shim"), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    assert f"{sum(SUITES.values()) - len(PINNED)} passed" in done.stdout, done.stdout[-4000:]
    assert f"{len(PINNED)} deselected" in done.stdout


def test_suites_that_are_left_out_are_there(upstream):
    for name in (*NOT_OURS, *SUITES):
        assert (upstream / "tests" / name).exists(), name


def test_the_page_of_the_schema_is_theirs_too(upstream):
    """Their own copy of the page has the faults that ours lists."""
    text = (upstream / "flashinfer_trace" / "definition.md").read_text()
    fences = text.split("```json")[1:]
    strict = 0
    for fence in fences:
        body = fence.split("```")[0]
        try:
            parse_text(body)
            strict += 1
        except Exception:  # noqa: BLE001  (counted)
            assert parse_text(body, mend=True).repairs
    assert 0 < strict < len(fences)
