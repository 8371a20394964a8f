"""CUDA kernels as Solutions: their sources and how they are launched, at the sizes of models."""

import json
import re

import pytest

from bedstone.build.lane import target_lane
from bedstone.library.mathematics import define, family_of
from bedstone.prove.own.planned import MOST_ROWS_BY_TILES, planned_in_every_way, untouched
from bedstone.prove.own.problems import (
    ALONE,
    IN_TURN,
    ROUNDED,
    Written,
    own_problems,
    tolerance_of,
)
from bedstone.prove.own.solutions import kernel_solution
from bedstone.prove.trace_set import read_trace_set
from bedstone.spec.dialect.solution import emit_solution, parse_solution
from bedstone.spec.identity import solution_identity
from bedstone.target.hardware import read_sets
from bedstone.target.sources import read_sources

SETS = {n: target_lane("hopper", n).kernels for n in ("precise", "quantized")}
SOURCES = read_sources(read_sets()["hopper"])
both = pytest.mark.parametrize("numerics", SETS)


def small(entry, numerics="quantized", base=None):
    kernel, family = SETS[numerics].kernels[entry], family_of(entry)
    numbers = {**family.defaults, **family.sizes}
    of = define(kernel, numbers, base or entry)
    return of, kernel_solution(kernel, of, numbers, SOURCES, entry)


def calling(solution):
    (text,) = (s.content for s in solution.sources if s.path == "call.json")
    return json.loads(text)


@pytest.fixture(scope="module")
def problems():
    """All of both numerics' kernels, at the sizes of two models or small ones."""
    found = {}
    for numerics, kernels in SETS.items():
        names = ["smollm2-135m", "deepseek-v2-lite"]
        calls = list(planned_in_every_way(names, kernels, target="hopper"))
        found[numerics] = list(own_problems([*calls, *untouched(calls, kernels)], kernels))
    return found


# --- exported -------------------------------------------------------------------------------------


def test_a_solution_has_every_file_that_its_source_includes():
    of, solution = small("attention_d64_x8", base="attention")
    files = {source.path: source.content for source in solution.sources}
    for text in files.values():
        own = re.findall(r'#include "([\w./]+)"', text)
        assert set(own) <= files.keys()
    assert {"attention_64.cu", "attend_one.cuh", "abi.cuh", "call.json"} <= files.keys()
    assert solution.name == f"{of.name}.d64_x8.hopper"
    assert solution.spec.languages == ("cuda",)
    assert solution.spec.entry_point == "attention_64.cu::attention"
    flags = solution.spec.options["cuda_cflags"]
    assert {"-DBS_CACHE=bf16", "-DBS_ONLY=attention", *SOURCES.flags} <= set(flags)


def test_a_launch_says_its_threads_clusters_and_overlap():
    of, solution = small("attention_d64_x8", base="attention")
    said = calling(solution)
    assert (said["block"], said["cluster"], said["overlaps"]) == ([128, 1, 1], [1, 1, 8], True)
    assert said["tensors"] == ["q", "k", "v", "position", "pages", "y"]
    assert of.inputs["k"].dtype == "bfloat16"
    plain = calling(small("silu")[1])
    assert plain["cluster"] is None


def test_a_launch_says_how_the_copy_engine_reads_its_matrices():
    of, solution = small("linear_q_bf16_batch", base="linear_q_bf16")
    said = calling(solution)
    rows, k, n = (
        next(at for at, p in enumerate(said["parameters"]) if p.get("i32") == value)
        for value in (["xq", 0], of.axes["k"].value, 72)
    )
    *_, last = said["parameters"]
    heights = [
        *(["xq", rows, [k], h] for h in (16, 32, 64)),
        *(["w", n, [k], h] for h in (8, 16, 32, 64, 128)),
    ]
    assert last == {"maps": heights}
    assert of == small("linear_q_bf16")[0]


def test_what_is_compiled_under_another_name_keeps_the_catalogs():
    of, solution = small("norm")
    assert solution.name == f"{of.name}.hopper"
    assert solution.spec.entry_point == "norm.cu::norm_f"
    assert of.name.startswith("norm_width64_")


@both
@pytest.mark.parametrize("dialect", ["fib", "flashinfer", "sol"])
def test_every_solution_is_read_back_by_every_reader(problems, numerics, dialect):
    entries = {p.kernel.entry: p for p in problems[numerics]}
    for entry, each in entries.items():
        for solution in each.solutions([SOURCES]):
            emitted = emit_solution(solution, dialect)
            assert not [loss for loss in emitted.losses if loss.fatal], entry
            reading = parse_solution(emitted.value, dialect)
            assert reading.findings == (), entry
            read = reading.require("solution")
            assert read.spec.entry_point == solution.spec.entry_point
            assert read.spec.options == solution.spec.options
            if dialect != "sol":
                assert solution_identity(read) == solution_identity(solution), entry


# --- at the sizes of known models -----------------------------------------------------------------


@both
def test_no_kernel_is_left_out(problems, numerics):
    found = {name for each in problems[numerics] for name in each.kernels}
    left = {name for name, _ in SETS[numerics].named} - found
    # attention of one width is for tables of bfloat16
    assert all(re.search(r"_[mdw]\d", name) for name in left)
    assert bool(left) == (numerics == "precise")


def test_a_kernel_of_one_width_is_tried_at_it(problems):
    for problem in problems["quantized"]:
        widths = {re.search(r"_[mdw](\d+)", name) for name in problem.kernels} - {None}
        assert {int(found[1]) for found in widths} <= {problem.numbers.get("dk")}


def test_a_batchs_kernel_is_tried_on_as_many_rows_as_it_is_for(problems):
    tried = [
        on.axes["rows"]
        for numerics in SETS
        for problem in problems[numerics]
        for name in problem.kernels
        for on in problem.workloads
        if name.endswith("_batch")
    ]
    assert tried
    assert max(tried) <= 64


def test_a_rounded_value_alone_may_be_farther_off():
    kernel, of = SETS["quantized"].kernels["linear_q4_1"], small("linear_q4_1")[0]
    assert tolerance_of(kernel, of, [(3, 1)]) == ROUNDED
    assert tolerance_of(kernel, of, [(1, 1)]) == ALONE
    exact = SETS["precise"].kernels["linear_q4_1"]
    assert tolerance_of(exact, small("linear_q4_1", "precise")[0], [(1, 1)]) is None


def test_products_one_after_the_other_may_be_off_as_far_as_all_of_them():
    kernel = dict(SETS["quantized"].named)["tail_parts3_q8_0_rows"]
    of = define(kernel, family_of(kernel.entry).sizes, kernel.entry)
    assert tolerance_of(kernel, of, [(1, 96)]) == IN_TURN
    assert tolerance_of(kernel, of, [(1, 1)]) == ALONE
    turned = dict(SETS["quantized"].named)["attention_turned_d64_x2"]
    of = define(turned, family_of(turned.entry).sizes, turned.entry)
    assert tolerance_of(turned, of, [(1, 96)]) == ROUNDED


def test_a_variant_solves_what_it_suits(problems):
    for each in problems["quantized"]:
        rows = {w.axes.get("rows", 0) for w in each.workloads}
        assert max(rows) <= MOST_ROWS_BY_TILES
        if each.kernel.entry == "linear_q_bf16":
            assert ("linear_q_bf16_tall" in each.kernels) == (max(rows) > 64)
        slots = each.definition.axes.get("slots")
        assert slots is None or slots.value > max(rows)


def test_what_rounds_is_judged_as_such(problems):
    tolerances = {
        p.definition.name: p.workloads[0].tolerance for n in SETS for p in problems[n]
    }  # fmt: skip
    for name, tolerance in tolerances.items():
        rounds = "_codes_bf16" in name or "_tables_bf16" in name
        rounded = IN_TURN if name.startswith("tail_") else ROUNDED
        assert tolerance == (rounded if rounds else None), name


def test_a_set_of_both_numerics_is_read_back(tmp_path, problems):
    written = Written()
    some = [p for n in SETS for p in problems[n] if p.kernel.entry in ("norm_f", "attention")]
    for problem in some:
        written.add(tmp_path, problem, [SOURCES])
    read = read_trace_set(tmp_path)
    assert read.unreadable == ()
    counts = written.counts()
    assert counts["definitions"] == len(read.definitions) < len(some)
    assert counts["solutions"] == sum(map(len, read.solutions.values()))
    assert counts["workloads"] == sum(map(len, read.workloads.values()))
