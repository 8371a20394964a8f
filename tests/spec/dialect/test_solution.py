import pytest

from bedstone.spec.dialect.solution import emit_solution, parse_solution
from bedstone.spec.identity import solution_identity


def value(spec=(), **changes):
    return {
        "name": "s",
        "definition": "d",
        "author": "a",
        "spec": {
            "language": "triton",
            "target_hardware": ["H100"],
            "entry_point": "main.py::run",
            "dependencies": ["torch"],
            "destination_passing_style": True,
            **dict(spec),
        },
        "sources": [{"path": "main.py", "content": "def run(): ..."}],
        **changes,
    }


def identity(spec=(), **changes):
    return solution_identity(parse_solution(value(spec, **changes)).require("s"))


def test_a_solution_is_written_back_as_it_was_read():
    given = value({"build_commands": ["make"]}, description="d", score=1)
    reading = parse_solution(given)
    assert (reading.dialect, reading.findings) == ("fib", ())
    assert emit_solution(reading.value, "fib").value == given


@pytest.mark.parametrize(
    "path", ["../evil.py", "..\\evil.py", "/evil.py", "a/../../evil.py", "C:/evil.py", ""]
)
def test_a_source_stays_below_its_folder(path):
    sources = [{"path": "main.py", "content": ""}, {"path": path, "content": "x"}]
    assert not parse_solution(value(sources=sources)).usable


@pytest.mark.parametrize(
    ("spec", "changes", "message"),
    [
        ({"entry_point": "main.py::"}, {}, "expected `file::function`"),
        ({"entry_point": "other.py::run"}, {}, "`other.py` is not among the sources"),
        ({"target_hardware": []}, {}, "expected at least one name"),
        ({"binding": "pybind"}, {}, "expected `tvm-ffi`, `torch` or null"),
        ({}, {"sources": []}, "expected at least one file"),
        ({}, {"sources": [{"path": p, "content": "x"} for p in ("main.py", "./main.py")]},
         "`./main.py` is given twice"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(spec, changes, message):
    findings = parse_solution(value(spec, **changes)).findings
    assert any(message in str(finding) for finding in findings)
    assert any(finding.severity == "error" for finding in findings)


def test_an_empty_file_is_a_file_though_flashinfer_bench_refuses_it():
    sources = [{"path": "main.py", "content": "x"}, {"path": "pkg/__init__.py", "content": ""}]
    reading = parse_solution(value(sources=sources))
    assert reading.usable
    fatal = [loss.path for loss in emit_solution(reading.value, "fib").losses if loss.fatal]
    assert fatal == ["/sources/1/content"]


def test_languages_of_sol_execbench_and_back():
    spec = {"language": ..., "languages": ["cuda_cpp", "cutlass"],
            "compile_options": {"cuda_cflags": ["-O3"]}}  # fmt: skip
    given = value()
    given["spec"] = {k: v for k, v in (given["spec"] | spec).items() if v is not ...}
    reading = parse_solution(given)
    assert (reading.dialect, reading.usable) == ("sol", True)
    assert emit_solution(reading.value, "sol").value == given
    emission = emit_solution(reading.value, "fib")
    assert emission.value["spec"]["language"] == "cuda"
    assert [loss.path for loss in emission.losses] == ["/spec/languages", "/spec/compile_options"]


def test_the_default_calling_style_is_the_dialects():
    spec = value()["spec"]
    del spec["destination_passing_style"]
    for dialect, passing in (("fib", True), ("flashinfer", False), ("sol", False)):
        read = parse_solution(value(spec=()) | {"spec": spec}, dialect).value
        assert read.spec.destination_passing is passing


def test_identity_is_all_that_a_build_depends_on():
    one = identity()
    assert one == identity(name="t", author="b", description="other")
    assert one == identity({"dependencies": ["torch"]})
    others = [
        identity({"destination_passing_style": False}),
        identity({"target_hardware": ["B200"]}),
        identity({"binding": "torch"}),
        identity({"compile_options": {"cflags": ["-O0"]}}),
        identity({"dependencies": ["tor", "ch"]}),
        identity({"dependencies": ["to", "rch"]}),
        identity(definition="e"),
        identity(sources=[{"path": "main.py", "content": "def run(): pass"}]),
    ]
    assert len({one, *others}) == 9


def test_the_order_of_sources_changes_nothing():
    sources = [{"path": "main.py", "content": "x"}, {"path": "b.py", "content": "y"}]
    assert identity(sources=sources) == identity(sources=sources[::-1])


def test_cpp_with_an_entry_in_a_c_file_is_c():
    spec = {"language": "cpp", "entry_point": "k.c::run"}
    given = value(spec, sources=[{"path": "k.c", "content": "int x;"}])
    read = parse_solution(given).require("s")
    assert read.spec.languages == ("c",)
    emitted = emit_solution(read, "fib")
    assert (emitted.value, emitted.losses) == (given, ())
    other = {"language": "cpp", "entry_point": "k.cpp::run"}
    kept = parse_solution(value(other, sources=[{"path": "k.cpp", "content": "int x;"}]))
    assert kept.value.spec.languages == ("cpp",)
