"""A set in the words of FlashInfer-Bench: what is written, and what is told to be lost."""

import json

import pytest
import torch
from safetensors.torch import save_file

from bedstone.prove.interchange import write_for_flashinfer_bench
from bedstone.prove.trace_set import (
    append_traces,
    append_workloads,
    read_trace_set,
    write_definition,
    write_solution,
)
from bedstone.spec.trace import Trace
from bedstone.spec.workload import Custom, Stored, Workload
from command_line import bedstone
from definitions import TENSOR, definition, solution, workload
from prove.outcomes import passed

PLAIN = definition()
BYTES = definition(name="bytes_n", inputs={"x": {"shape": ["n"], "dtype": "uint8"}})
PLACE = definition(name="place_n", outputs={"x": TENSOR})
SIZED = definition(
    name="sized_n",
    axes={"n": {"type": "var"}, "m": {"type": "expr", "expression": "2 * n"}},
    inputs={"x": TENSOR, "pair": {"shape": ["2"], "dtype": "float32"}},
    outputs={"y": {"shape": ["m"], "dtype": "float32"}},
    reference="import torch\n\ndef run(x, pair):\n    return torch.cat([x, x])\n",
)
CODE = "def run(x):\n    return x\n"


def write(root, of, *workloads):
    write_definition(root, of)
    one = solution(CODE, of=of.name)
    write_solution(root, of, one)
    append_workloads(root, of, workloads or [workload()])
    append_traces(root, of, "tester", [Trace(of.name, workload(), one.name, passed(1.5))])


@pytest.fixture
def converted(tmp_path):
    """The conversion of a set of all kinds, and what our reader finds in it."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for of in (PLAIN, BYTES, PLACE, SIZED):
        write(ours, of)
    done = write_for_flashinfer_bench(read_trace_set(ours), theirs)
    return done, read_trace_set(theirs)


def test_what_cannot_be_said_is_left_out_with_all_that_belongs_to_it(converted):
    done, found = converted
    assert found.unreadable == ()
    assert set(found.definitions) == {"double_n", "place_n", "sized_n"}
    assert set(found.workloads) == set(found.definitions)
    assert dict(done.left_out) == {"definition": 1, "solution": 2, "workload": 1, "trace": 2}
    assert dict(done.written) == {"definition": 3, "solution": 2, "workload": 3, "trace": 2}
    (line,) = (line for line in done.lines if "bytes_n" in line)
    assert line.startswith("left out: definition `bytes_n`: /inputs/x/dtype: element type `uint8`")


def test_what_is_written_in_place_keeps_its_mathematics_and_no_solution(converted):
    done, found = converted
    assert list(found.definitions["place_n"].outputs) == ["x_out"]
    assert found.definitions["place_n"].in_place == {}
    assert "place_n" not in found.solutions
    assert "left out: solution `candidate`: it writes over `x`" in "\n".join(done.lines)


def test_computed_and_literal_sizes_are_axes_that_workloads_state(converted):
    _, found = converted
    axes = found.definitions["sized_n"].axes
    assert axes["size_2"].value == 2
    assert dict(found.workloads["sized_n"][0].axes) == {"n": 16, "m": 32}
    assert dict(found.traces["sized_n"][0].workload.axes) == {"n": 16, "m": 32}


def test_a_second_solution_of_one_name_gets_one_of_its_own(converted):
    done, found = converted
    assert [s.name for s in found.solutions["double_n"]] == ["candidate"]
    assert [s.name for s in found.solutions["sized_n"]] == ["candidate.sized_n"]
    assert [t.solution for t in found.traces["sized_n"]] == ["candidate.sized_n"]
    assert any("a second of that name becomes `candidate.sized_n`" in line for line in done.lines)


def test_stored_inputs_are_taken_along(tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    stored = Workload({"n": 4}, {"x": Stored("blob/x.safetensors", "x")}, "stored")
    lost = Workload({"n": 4}, {"x": Stored("blob/none.safetensors", "x")}, "lost")
    away = Workload({"n": 4}, {"x": Stored("../x.safetensors", "x")}, "away")
    custom = Workload({"n": 4}, {"x": Custom()}, "custom")
    write(ours, PLAIN, stored, lost, away, custom)
    (ours / "blob").mkdir()
    save_file({"x": torch.ones(4)}, ours / "blob/x.safetensors")
    done = write_for_flashinfer_bench(read_trace_set(ours), theirs)
    assert [on.uuid for on in read_trace_set(theirs).workloads["double_n"]] == ["stored"]
    assert (theirs / "blob/x.safetensors").read_bytes() == (
        ours / "blob/x.safetensors"
    ).read_bytes()
    assert done.left_out["workload"] == 3


def test_what_belongs_to_no_definition_and_what_cannot_be_read_is_told_of(tmp_path):
    ours = tmp_path / "ours"
    write(ours, PLAIN)
    (path,) = (ours / "definitions").rglob("*.json")
    path.write_text("{")
    done = write_for_flashinfer_bench(read_trace_set(ours), tmp_path / "theirs")
    assert done.written.total() == 0
    assert "double_n.json" in done.lines[0]
    assert done.lines[1].endswith("there is no such definition")


def test_convert_takes_a_set(tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    write(ours, PLAIN)
    write(ours, BYTES)
    ended = bedstone("define", "convert", ours, "--to", "fib", "--out", theirs)
    assert ended.code == 0, ended.err
    assert ended.out == (
        "1 definition, 1 solution, 1 workload, 1 trace; "
        "left out: 1 definition, 1 solution, 1 workload, 1 trace\n"
    )
    assert "left out: definition `bytes_n`" in ended.err
    again = bedstone("define", "convert", ours, "--to", "fib", "--out", theirs)
    assert again.code == 0
    (trace,) = read_trace_set(theirs).every_trace()
    assert json.loads((next(theirs.rglob("traces/**/*.jsonl"))).read_text())
    assert trace.passed


@pytest.mark.parametrize("wrong", [("--to", "sol", "--out", "x"), ("--to", "fib")])
def test_a_set_has_one_other_form(tmp_path, wrong):
    write(tmp_path / "ours", PLAIN)
    ended = bedstone("define", "convert", tmp_path / "ours", *wrong)
    assert ended.code != 0
    assert "a set is converted `--to fib`" in ended.err
