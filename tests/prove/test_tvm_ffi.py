"""Solutions in C++ whose entry TVM-FFI exports."""

import shutil
from dataclasses import replace
from importlib.metadata import PackageNotFoundError

import pytest

from bedstone.prove.evaluate import evaluate
from bedstone.prove.results import ResultError
from bedstone.prove.sandbox import tvm_ffi
from bedstone.prove.sandbox.zygote import Zygote
from bedstone.spec.solution import BuildSpec, Solution, SourceFile
from prove.runs import problem

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("c++") is None, reason="the machine has no C++ compiler"),
]

CODE = """
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include "factor.h"

void run(tvm::ffi::TensorView x, tvm::ffi::TensorView y)
{
    for (int64_t i = 0; i < x.size(0); ++i)
        static_cast<float *>(y.data_ptr())[i] = FACTOR * static_cast<float *>(x.data_ptr())[i];
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
"""


def written(code=CODE, factor="2.0f", entry="run", **spec):
    build = BuildSpec(("cpp",), ("cpu",), f"pkg/main.cpp::{entry}", **spec)
    header = f"#ifndef FACTOR\n#define FACTOR {factor}\n#endif\n"
    sources = (SourceFile("pkg/main.cpp", code), SourceFile("pkg/factor.h", header))
    return Solution("candidate", "double_n", "tester", build, sources)


@pytest.fixture(scope="module")
def building(tmp_path_factory):
    with Zygote(tmp_path_factory.mktemp("solutions")) as running:
        yield running


def test_a_solution_is_built_once_and_run(building):
    def built():
        return set(building.cache.glob("*.tvm_ffi.so"))

    # code that no other test has built here
    own = written(f"{CODE}\n// built by this test alone\n")
    posed, before = problem(trials=1), built()
    for _ in range(2):
        found = evaluate(posed, own, building)
        assert found.status == "PASSED", found.log
    assert len(built() - before) == 1


def test_flags_and_headers_are_part_of_it(building):
    posed = problem(trials=1)
    wrong = evaluate(posed, written(factor="3.0f"), building)
    assert wrong.status == "INCORRECT_NUMERICAL", wrong.log
    told = written(factor="3.0f", options={"cflags": ("-DFACTOR=2.0f",)}, binding="tvm-ffi")
    found = evaluate(posed, told, building)
    assert found.status == "PASSED", found.log


@pytest.mark.parametrize(
    ("solution", "said"),
    [
        (written("int x = y;"), "main.cpp"),
        (written(entry="other"), "TVM-FFI finds no `other` exported"),
        (
            replace(written(), sources=(SourceFile("pkg/main.cpp.txt", "x"),)),
            "no file ends in one of `.cc`, `.cpp`, `.cu`, `.cxx`",
        ),
    ],
)
def test_what_cannot_be_built_says_why(building, solution, said):
    found = evaluate(problem(trials=1), solution, building)
    assert found.status == "COMPILE_ERROR", found.log
    assert said in found.log


def test_a_machine_without_the_package_says_what_to_install(tmp_path, monkeypatch):
    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(tvm_ffi, "version", absent)
    spec = {"languages": ["cpp"], "cache": str(tmp_path), "options": {}}
    with pytest.raises(ResultError, match=r"`cpp` .* needs the package `apache-tvm-ffi`: install"):
        tvm_ffi.load_tvm_ffi(tmp_path, "run", spec)
