"""Our own kernels as Solutions: exported with all they need, built in C, right at every format."""

import json
import re
import subprocess
from dataclasses import replace

import pytest

from bedstone.library.catalog import cpu_kernels
from bedstone.library.mathematics import define, family_of
from bedstone.prove.build import build_kernels
from bedstone.prove.evaluate import evaluate
from bedstone.prove.own.planned import (
    MOST_WEIGHTS,
    Called,
    format_of,
    in_every_format,
    in_format,
    planned_in_every_way,
    scaled,
    untouched,
)
from bedstone.prove.own.problems import own_problems, tolerance_of
from bedstone.prove.own.solutions import kernel_solution
from bedstone.prove.sandbox.native import native_unit
from bedstone.prove.sandbox.zygote import Zygote
from bedstone.prove.trace_set import read_trace_set, write_definition, write_solution
from bedstone.prove.write import write_sources
from bedstone.spec.dialect.solution import emit_solution, parse_solution
from bedstone.spec.dtype import FORMATS
from bedstone.spec.identity import solution_identity
from bedstone.spec.solution import SourceFile
from bedstone.spec.workload import Workload
from bedstone.target.cpu import runnable
from bedstone.target.features import read_features
from bedstone.target.hardware import read_sets
from bedstone.target.sources import read_sources
from bedstone.target.toolchain import compile_many, find_compiler
from prove.runs import problem

KERNELS = cpu_kernels()
BEST = runnable(read_sets(), read_features())[0]


@pytest.fixture(scope="module")
def compiling(tmp_path_factory):
    """A process that forks candidates, which keep what they compile for other tests."""
    with Zygote(tmp_path_factory.mktemp("solutions")) as running:
        yield running


@pytest.fixture
def taking(compiling, modules):
    """Lets candidates of a hardware set have the modules that the set's other tests have."""

    def take(entries, hardware=BEST):
        sources = read_sources(read_sets()[hardware])
        kernels = {k.module: k for k in map(KERNELS.kernels.__getitem__, entries)}
        units = [sources.unit(k.source, k.defines) for k in kernels.values()]
        compile_many(units, cache=modules, compiler=find_compiler())
        solutions = [small(entry, hardware)[1] for entry in entries]
        assert build_kernels(solutions, compiling.cache, modules).failed == {}
        return compiling

    return take


def small(entry, hardware=BEST):
    """A kernel's Definition and Solution at the small sizes of its mathematics."""
    kernel, family = KERNELS.kernels[entry], family_of(entry)
    numbers = {**family.defaults, **family.sizes}
    of = define(kernel, numbers)
    return of, kernel_solution(kernel, of, numbers, read_sources(read_sets()[hardware]))


def posed(of, entry, **config):
    sizes = family_of(of.name).sizes
    allowed = tolerance_of(KERNELS.kernels[entry], of)
    on = Workload({n: sizes[n] for n in of.var_axes}, {}, "w", allowed)
    return problem(of, on, warmup=0, iterations=3, samples=1, **config)


def tried(running, entry, hardware=BEST):
    of, solution = small(entry, hardware)
    return evaluate(posed(of, entry), solution, running)


def without(solution, path):
    return replace(solution, sources=tuple(s for s in solution.sources if s.path != path))


def with_text(solution, path, text):
    return replace(without(solution, path), sources=(
        *without(solution, path).sources, SourceFile(path, text)))  # fmt: skip


def calling(solution, **changes):
    (text,) = (s.content for s in solution.sources if s.path == "call.json")
    return with_text(solution, "call.json", json.dumps(json.loads(text) | changes))


# --- exported -------------------------------------------------------------------------------------


def test_a_solution_has_every_file_that_its_source_includes():
    _, solution = small("norm_q")
    files = {source.path: source.content for source in solution.sources}
    assert {"norm.c", "norm.h", "quantize.h", "vector.h", "simd.h", "abi.h", "call.json"} <= set(
        files
    )
    found = (folder / "simd.h" for folder in read_sources(read_sets()[BEST]).include)
    own = next(path for path in found if path.exists())
    assert files["simd.h"] == own.read_text()
    assert solution.spec.entry_point == "norm.c::norm_q"
    assert solution.spec.target_hardware == (BEST,)
    assert set(read_sources(read_sets()[BEST]).flags) <= set(solution.spec.options["cflags"])


def test_a_solution_in_c_is_cpp_to_flashinfer_bench_and_c_to_us_again():
    _, solution = small("linear_q4_1")
    emitted = emit_solution(solution, "fib")
    assert emitted.value["spec"]["language"] == "cpp"
    assert not [loss for loss in emitted.losses if loss.fatal]
    read = parse_solution(emitted.value).require("solution")
    assert read.spec.languages == ("c",)
    assert solution_identity(read) == solution_identity(solution)


def test_what_is_called_says_where_every_parameter_comes_from():
    _, solution = small("linear_q4_1_b_rows")
    (text,) = (s.content for s in solution.sources if s.path == "call.json")
    said = json.loads(text)
    kernel = KERNELS.kernels["linear_q4_1_b_rows"]
    assert said["types"] == kernel.abi
    assert said["parameters"] == [
        {"tensor": "x"}, {"tensor": "w"}, {"tensor": "bias"}, {"tensor": "table"},
        {"tensor": "slot"}, {"i32": ["x", 0]}, {"i32": 512}, {"i32": 72},
    ]  # fmt: skip
    assert said["tensors"] == ["x", "w", "bias", "table", "slot"]
    assert said["grid"] == [[7, 32, 1], 1, 1]


# --- built ----------------------------------------------------------------------------------------


def test_a_kernel_is_built_and_right(compiling):
    found = tried(compiling, "norm_q")
    assert found.status == "PASSED", found.log
    assert found.outcome.performance.latency_ms > 0


def test_a_module_of_a_hardware_set_is_taken_for_its_own_sources_alone(modules, tmp_path):
    kernel, (_, solution) = KERNELS.kernels["silu"], small("silu")
    unit = read_sources(read_sets()[BEST]).unit(kernel.source, kernel.defines)
    (own,) = compile_many([unit], cache=modules, compiler=find_compiler())
    library = tmp_path / "modules"
    library.mkdir()
    (library / own.name).write_bytes(b"kept")

    def built(name, solution, library):
        assert build_kernels([solution], tmp_path / name, library).compiled == 1
        (path,) = (tmp_path / name).glob("*.so")
        return path.read_bytes()

    assert built("taken", solution, library) == b"kept"
    assert built("compiled", solution, tmp_path) == own.read_bytes()
    first, *others = solution.sources
    changed = replace(solution, sources=(replace(first, content=first.content + "\n"), *others))
    assert built("changed", changed, library) == own.read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: without(s, "call.json"), "a kernel says how it is called in `call.json`"),
        (lambda s: calling(s, types="i32"), "a type for each parameter"),
        (
            lambda s: calling(s, types="i32, i32, i32"),
            "takes `in buffer<f32>, .*and `call.json` says `i32, i32, i32`",
        ),
        (lambda s: calling(s, grid=3), "says how it is called"),
        (lambda s: with_text(s, "elementwise.c", "int x = ;"), "does not compile"),
        (lambda s: without(s, "simd.h"), "does not compile"),
        (lambda s: with_text(s, "elementwise.c", "int x;"), "the module exports no `bs_needs`"),
    ],
)  # fmt: skip
def test_a_solution_that_cannot_be_built_says_why(compiling, change, message):
    of, solution = small("silu")
    found = evaluate(posed(of, "silu", trials=1), change(solution), compiling)
    assert found.status == "COMPILE_ERROR"
    assert re.search(message, found.log), found.log


def test_a_solution_for_another_machine_is_not_called(compiling):
    of, solution = small("silu")
    needs = 'const char bs_needs[] = " amx_of_tomorrow";'
    found = evaluate(posed(of, "silu", trials=1), with_text(solution, "needs.h", needs), compiling)
    assert found.status == "COMPILE_ERROR"
    assert "`amx_of_tomorrow`" in found.log


def test_a_set_of_our_own_is_read_back(tmp_path):
    of, solution = small("softcap")
    write_definition(tmp_path, of)
    write_solution(tmp_path, of, solution)
    read = read_trace_set(tmp_path)
    assert read.unreadable == ()
    assert read.definitions[of.name] == of
    assert solution_identity(read.solutions[of.name][0]) == solution_identity(solution)


# --- at the sizes of known models -----------------------------------------------------------------


@pytest.fixture(scope="module")
def planned():
    """The calls of all numerics, each of which has tables of its own."""
    names = ["smollm2-135m", "deepseek-v2-lite"]
    sets = (KERNELS, cpu_kernels("bf16"))
    return [call for kernels in sets for call in planned_in_every_way(names, kernels)]


def test_plans_call_what_their_families_are_made_of(planned):
    called = {call.entry for call in planned}
    assert {"linear_f32", "add_norm", "rope_parts_rows", "attention", "argmax_rows"} <= called
    assert {"route_q4_0", "xdown_s_q_q4_1", "gather", "attention_in_split"} <= called


def test_sizes_are_small_and_those_that_matter_stay(planned):
    for call in planned:
        sizes = call.sizes()
        assert sizes.get("rows", 1) <= 74
        assert sizes["stack"] > sizes.get("chosen", 1)
    widths = {c.sizes()["k"] for c in planned if c.entry == "linear_bf16"}
    assert {576, 1536, 2048} <= widths


def test_outputs_beyond_a_bound_go_and_a_ragged_tile_stays():
    kernel = KERNELS.kernels["linear_f32"]
    call = Called("linear_f32", (("k", 2048), ("n", 49155), ("rows", 400)))
    sizes = scaled(call, kernel).sizes()
    assert sizes["n"] % 32 == 49155 % 32
    assert 64 * 2048 <= sizes["n"] * 2048 <= MOST_WEIGHTS + 2048 * 32
    assert (sizes["k"], sizes["rows"]) == (2048, 37)
    same = Called("linear_f32", (("k", 64), ("n", 70), ("rows", 1)))
    assert scaled(same, kernel).sizes()["n"] == 70


def test_a_call_goes_to_every_format_whose_blocks_fit():
    kernel = KERNELS.kernels["linear_q8_0_b"]
    call = Called("linear_q8_0_b", (("k", 576), ("n", 64), ("rows", 1)))
    found = {each.entry for each in in_every_format(call, kernel, KERNELS)}
    assert found == {f"linear_{name}_b" for name in FORMATS} - {"linear_q4_k_b", "linear_q6_k_b"}
    assert [*in_every_format(Called("add", ()), KERNELS.kernels["add"], KERNELS)] == [
        Called("add", ())
    ]
    assert in_format("xglu_q_q4_0_q", FORMATS["q4_0"], FORMATS["q6_k"]) == "xglu_q_q6_k_q"


def test_no_kernel_is_left_out(planned):
    problems = own_problems([*planned, *untouched(planned, KERNELS)], KERNELS)
    assert {name for each in problems for name in each.kernels} == set(KERNELS.kernels)


def test_workloads_of_one_definition_stand_together(planned):
    problems = list(own_problems(planned, KERNELS))
    names = [each.definition.name for each in problems]
    assert len(names) == len(set(names))
    assert max(len(each.workloads) for each in problems) > 2
    uuids = [on.uuid for each in problems for on in each.workloads]
    assert len(uuids) == len(set(uuids))


# --- every kernel ---------------------------------------------------------------------------------

SAMPLED = {
    "linear": "q4_k", "hlinear": "q8_0", "experts": "q4_1", "embed": "q6_k", "panels": "q4_1",
}  # fmt: skip
"""The format whose kernels are tried for each source, and of those by panels; a decoder of every
other goes beside."""


def sampled():
    for entry, kernel in KERNELS.kernels.items():
        parts = entry.split("_")
        if "r" in parts and {"q", "fq"} & set(parts):
            continue  # what is rounded is rounded before a result takes its forms
        fmt = format_of(kernel)
        family = "panels" if "panels" in parts else kernel.source.removesuffix(".c")
        if fmt is None or fmt.name == SAMPLED[family] or entry == f"embed_{fmt.name}":
            yield entry


@pytest.mark.slow
def test_every_kernel_passes_against_its_definition(taking):
    entries = list(sampled())
    assert len(entries) > 160
    running = taking(entries)
    found = {entry: tried(running, entry) for entry in entries}
    assert {entry: f.log for entry, f in found.items() if f.status != "PASSED"} == {}


BY_SOURCE = {
    kernel.source: entry
    for entry, kernel in KERNELS.kernels.items()
    if format_of(kernel) in (None, FORMATS["q4_1"])
}
"""A kernel of every source."""


@pytest.mark.slow
@pytest.mark.parametrize("hardware", runnable(read_sets(), read_features()))
def test_a_kernel_of_every_source_passes_in_every_set(taking, hardware):
    running = taking(BY_SOURCE.values(), hardware)
    found = {entry: tried(running, entry, hardware) for entry in BY_SOURCE.values()}
    assert {entry: f.log for entry, f in found.items() if f.status != "PASSED"} == {}


@pytest.mark.parametrize(
    "hardware", [name for name, each in read_sets().items() if each.vendor == "cpu"]
)
def test_a_solution_of_every_source_is_whole(tmp_path, hardware):
    """The compiler finds every header among a Solution's own files."""
    compiler = find_compiler()
    for entry in BY_SOURCE.values():
        _, solution = small(entry, hardware)
        source = write_sources(solution, tmp_path) / solution.spec.entry_file
        unit = native_unit(source, solution.spec.options)
        command = [*compiler.command, "-M", *unit.flags, f"-I{source.parent}", source]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
