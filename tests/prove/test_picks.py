"""Kernels picked by Traces: the fastest of the sets a target inherits from, and why."""

import pytest

from bedstone.build.lane import target_lane
from bedstone.build.launches import launches
from bedstone.build.picks import taken_from
from bedstone.build.request import Options
from bedstone.build.step import plan_step
from bedstone.checkpoint.shapes import shape_checkpoint
from bedstone.library.catalog import cpu_kernels
from bedstone.library.mathematics import define
from bedstone.prove.own.picks import TracePicks, inherited
from bedstone.prove.own.planned import called, scaled
from bedstone.prove.own.solutions import kernel_solution
from bedstone.prove.trace_set import TraceSet
from bedstone.spec.identity import definition_identity, solution_identity
from bedstone.spec.trace import Trace
from bedstone.spec.workload import Workload
from bedstone.target.hardware import read_sets
from bedstone.target.sources import read_sources
from prove.outcomes import failed, passed

DEVICE = "a processor x2"
SETS = read_sets()
OWN = "cpu-x86-64-v3"
NORM = cpu_kernels().kernels["add_norm"]
NUMBERS = {"rows": 1, "width": 576, "unit": 576, "eps": 1e-5, "plus_one": 0}


def trace(milliseconds, hardware, *, current=True, device=DEVICE, rows=1):
    """A Trace of `add_norm` of a set; a failure where the time is None."""
    sizes = scaled(called(NORM, NUMBERS), NORM).sizes()
    of = define(NORM, sizes)
    solution = kernel_solution(NORM, of, sizes, read_sources(SETS[hardware]))
    record = {
        "definition": definition_identity(of),
        "solution": solution_identity(solution) if current else "0" * 64,
    }
    make = failed("INCORRECT_NUMERICAL") if milliseconds is None else passed(milliseconds, **record)
    evaluation = _on(make, device)
    return Trace(
        of.name, Workload({"rows": rows}, {}, f"{hardware} {rows}"), solution.name, evaluation
    )


def _on(evaluation, device):
    from dataclasses import replace

    return replace(evaluation, environment=replace(evaluation.environment, hardware=device))


def picks(tmp_path, *traces, own=OWN):
    by_definition = {}
    for each in traces:
        by_definition.setdefault(each.definition, []).append(each)
    found = TraceSet(tmp_path, {}, {}, {}, by_definition)
    return TracePicks(found, read_sources(SETS[own]), DEVICE)


def verdict(tmp_path, *traces, own=OWN, **numbers):
    return picks(tmp_path, *traces, own=own).pick(NORM, NUMBERS | numbers)


def test_a_faster_kernel_of_an_inherited_set_is_picked(tmp_path):
    found = verdict(tmp_path, trace(2.0, OWN), trace(1.0, "cpu-generic"))
    assert found.hardware == "cpu-generic"
    assert found.reason == "1 ms; `cpu-x86-64-v3` is slower: 2 ms, not 1"


def test_the_own_kernel_stays_where_it_is_fastest(tmp_path):
    found = verdict(tmp_path, trace(1.0, OWN), trace(2.0, "cpu-generic"))
    assert found.hardware is None
    assert found.reason == "1 ms; `cpu-generic` is slower: 2 ms, not 1"


@pytest.mark.parametrize(
    ("traces", "why"),
    [
        ([], "never measured"),
        ([(1.0, "cpu-generic", {})], "`cpu-x86-64-v3` is never measured"),
        ([(1.0, "cpu-generic", {}), (2.0, OWN, {"current": False})],
         "`cpu-x86-64-v3` is changed since it was measured"),
        ([(1.0, "cpu-generic", {}), (2.0, OWN, {"device": "another"})],
         "`cpu-x86-64-v3` is measured on another, not on a processor x2"),
        ([(1.0, "cpu-generic", {}), (2.0, OWN, {"rows": 37})],
         "`cpu-x86-64-v3` is measured at other sizes: rows=37"),
        ([(None, OWN, {}), (1.0, "cpu-generic", {})],
         "`cpu-x86-64-v3` is failed: INCORRECT_NUMERICAL"),
    ],
)  # fmt: skip
def test_without_a_time_of_the_own_kernel_nothing_is_picked(tmp_path, traces, why):
    found = verdict(tmp_path, *(trace(ms, name, **more) for ms, name, more in traces))
    assert (found.hardware, found.reason) == (None, why)


def test_a_wrong_kernel_is_never_picked_however_fast(tmp_path):
    found = verdict(tmp_path, trace(2.0, OWN), trace(None, "cpu-generic"))
    assert found.hardware is None
    assert "`cpu-generic` is failed" in found.reason


def test_other_sizes_of_a_kernel_have_a_verdict_of_their_own(tmp_path):
    measured = (trace(2.0, OWN), trace(1.0, "cpu-generic"))
    assert verdict(tmp_path, *measured, rows=2).hardware is None
    assert verdict(tmp_path, *measured, width=64, unit=64).reason == "never measured"


def test_what_a_machine_need_not_run_is_no_alternative():
    names = [each.name for each in inherited(SETS["cpu-x86-64-v4"])]
    assert names == ["cpu-x86-64-v3", "cpu-generic"]
    assert inherited(SETS["cpu-generic"]) == []
    assert inherited(SETS["hopper"]) == []


def test_the_same_traces_have_the_same_identity(tmp_path):
    one, other = trace(2.0, OWN), trace(1.0, "cpu-generic")
    assert picks(tmp_path, one).identity == picks(tmp_path, one).identity
    assert picks(tmp_path, one).identity != picks(tmp_path, one, other).identity


def test_a_picked_kernel_has_a_module_of_its_own():
    moved = taken_from(NORM, "cpu-generic")
    assert (moved.module, moved.entry, moved.abi) == ("norm.cpu-generic", "add_norm", NORM.abi)


def test_every_launch_of_a_step_can_be_asked_about(tmp_path):
    options, lane = Options(context=4096), target_lane("cpu-generic", "quantized")
    shape = shape_checkpoint("smollm2-135m", "q4_1")
    schedule = plan_step(shape, "decode", options, lane).schedule
    asked = picks(tmp_path)
    calls = list(launches(schedule, lane.kernels, 4096))
    assert len(calls) == len(schedule.steps)
    assert {asked.pick(kernel, numbers).reason for kernel, numbers in calls} == {"never measured"}
