import pytest

from bedstone.prove.baseline import reference_solution
from bedstone.prove.evaluate import evaluate
from bedstone.spec.trace import Failed
from bedstone.spec.workload import Workload
from definitions import TENSOR, definition, workload
from prove.runs import problem, run

RIGHT = "def run(x):\n    return x + x\n"


def test_a_right_solution_passes_and_says_how_it_was_measured(zygote):
    evaluation = run(zygote, RIGHT, iterations=8)
    assert evaluation.status == "PASSED", evaluation.log
    performance = evaluation.outcome.performance
    assert performance.latency_ms > 0
    assert performance.speedup_factor == pytest.approx(1 / performance.latency_ms)
    record = evaluation.record
    assert (record["config"]["seed"], record["baseline"], record["judged"]) == (0, "reference", 5)
    timing = record["timing"]
    assert (timing["method"], timing["cache"], timing["scope"]) == ("wall clock", "warm", "run")
    assert timing["latency_ms"]["n"] == 8
    assert set(evaluation.outcome.correctness.extra) == {"y"}


def test_a_destination_passing_solution_fills_what_it_is_given(zygote):
    code = "import torch\ndef run(x, y):\n    torch.add(x, x, out=y)\n"
    assert run(zygote, code, passing=True).status == "PASSED"


def test_the_reference_passes_itself(zygote):
    asked = problem()
    assert evaluate(asked, reference_solution(asked.definition), zygote).status == "PASSED"


@pytest.mark.parametrize(
    ("code", "status", "message"),
    [
        ("def run(x:\n", "COMPILE_ERROR", "SyntaxError"),
        ("import nowhere\n", "COMPILE_ERROR", "No module named 'nowhere'"),
        ("x = 1\n", "COMPILE_ERROR", "`main.py` has no function `run`"),
        (
            "def run(x):\n    return x[:3] * 2\n",
            "INCORRECT_SHAPE",
            "expected shape [16], found [3]",
        ),
        ("def run(x):\n    return (x * 2).double()\n", "INCORRECT_DTYPE", "`torch.float64`"),
        ("def run(x):\n    return None\n", "INCORRECT_SHAPE", "expected 1 outputs, found 0"),
        ("def run(x):\n    return 'y'\n", "INCORRECT_DTYPE", "found builtins.str"),
        ("def run(x):\n    raise ValueError('no')\n", "RUNTIME_ERROR", "ValueError: no"),
        ("import sys\ndef run(x):\n    sys.exit(0)\n", "RUNTIME_ERROR", "SystemExit"),
        (
            "import os\ndef run(x):\n    os._exit(0)\n",
            "RUNTIME_ERROR",
            "its process ended in `call`",
        ),
        ("import ctypes\ndef run(x):\n    ctypes.string_at(0)\n", "RUNTIME_ERROR", "by SIGSEGV"),
        ("def run(x):\n    return x * 2.1\n", "INCORRECT_NUMERICAL", "worst at"),
        ("def run(x):\n    return x * float('nan')\n", "INCORRECT_NUMERICAL", "found nan"),
        ("def run(x):\n    return x * float('inf')\n", "INCORRECT_NUMERICAL", "inf"),
    ],
)
def test_what_goes_wrong_is_named(zygote, code, status, message):
    evaluation = run(zygote, code)
    assert evaluation.status == status
    assert message in evaluation.log


def test_what_a_solution_prints_is_kept(zygote):
    code = "print('hello')\ndef run(x):\n    return x * 3\n"
    assert "hello" in run(zygote, code).log


def test_a_solution_that_hangs_is_stopped_and_delays_no_other(zygote):
    hung = run(zygote, "import time\ndef run(x):\n    time.sleep(60)\n", seconds=1.0)
    assert hung.outcome == Failed("TIMEOUT")
    # its late answer cannot be taken for the next one's
    assert run(zygote, RIGHT).status == "PASSED"


def test_what_a_solution_started_ends_with_it(zygote, tmp_path):
    mark = tmp_path / "mark"
    code = (
        "import subprocess\n"
        f"subprocess.Popen(['sh', '-c', 'sleep 1; touch {mark}'])\n"
        "def run(x):\n    return x * 3\n"
    )
    run(zygote, code)
    run(zygote, "import time\ndef run(x):\n    time.sleep(1.5)\n    return x * 3\n")
    assert not mark.exists()


def test_sources_may_import_each_other(zygote):
    from bedstone.spec.solution import BuildSpec, Solution, SourceFile

    sources = (
        SourceFile("pkg/__init__.py", ""),
        SourceFile("pkg/main.py", "from .part import twice\nfrom pkg import part\nrun = twice\n"),
        SourceFile("pkg/part.py", "def twice(x):\n    return x + x\n"),
    )
    spec = BuildSpec(("python",), ("any",), "pkg/main.py::run", destination_passing=False)
    solution = Solution("s", "double_n", "a", spec, sources)
    assert evaluate(problem(), solution, zygote).status == "PASSED"


def test_a_language_without_a_builder_is_refused(zygote):
    from dataclasses import replace

    from definitions import solution

    one = solution(RIGHT)
    other = replace(one, spec=replace(one.spec, languages=("fortran",)))
    evaluation = evaluate(problem(), other, zygote)
    assert evaluation.outcome == Failed("COMPILE_ERROR")
    assert "no builder for `fortran`" in evaluation.log


# --- scalars, optional and in-place tensors ----------------------------------------------------

SCALARS = definition(
    inputs={
        "x": TENSOR,
        "eps": {"shape": None, "dtype": "float32"},
        "k": {"shape": None, "dtype": "int32"},
        "flip": {"shape": None, "dtype": "bool"},
        "zero": {"shape": [], "dtype": "float32"},
    },
    outputs={
        "total": {"shape": [], "dtype": "float32"},
        "count": {"shape": None, "dtype": "int32"},
    },
    reference="def run(x, eps, k, flip, zero):\n"
    "    return (x.sum() + zero) * eps * (-1 if flip else 1), int((x > 0).sum()) + k\n",
)
SCALAR_VALUES = {
    "eps": {"type": "scalar", "value": 0.5},
    "k": {"type": "scalar", "value": 2},
    "flip": {"type": "scalar", "value": True},
}
KINDS = (
    "    assert (type(eps), type(k), type(flip)) == (float, int, bool)\n"
    "    assert zero.shape == () and type(zero).__name__ == 'Tensor'\n"
)


def scalars(**changes):
    from bedstone.spec.dialect.workload import parse_workload

    value = {"uuid": "w", "axes": {"n": 16}, "inputs": SCALAR_VALUES | changes}
    return parse_workload(value).require("workload")


def test_f15_scalars_arrive_as_numbers_and_leave_as_numbers(zygote):
    body = "    return (x.sum() + zero) * eps * -1, int((x > 0).sum()) + k\n"
    code = f"def run(x, eps, k, flip, zero):\n{KINDS}{body}"
    assert run(zygote, code, SCALARS, scalars()).status == "PASSED"
    filled = (
        f"def run(x, eps, k, flip, zero, total, count):\n{KINDS}"
        "    total.fill_((x.sum() + zero) * eps * -1)\n    count.fill_(int((x > 0).sum()) + k)\n"
    )
    assert run(zygote, filled, SCALARS, scalars(), passing=True).status == "PASSED"


@pytest.mark.parametrize("name", ["eps", "k", "flip"])
def test_f15_a_number_of_another_kind_is_refused_by_name(name):
    wrong = {"eps": True, "k": 2.5, "flip": 1}[name]
    with pytest.raises(Exception, match=f"for input `{name}`, found"):
        problem(SCALARS, scalars(**{name: {"type": "scalar", "value": wrong}}))


def test_f15_a_list_is_no_scalar():
    with pytest.raises(Exception, match=r"/inputs/eps/value: expected a number or a boolean"):
        scalars(eps={"type": "scalar", "value": [1e-5]})


MAYBE = definition(
    inputs={"x": TENSOR, "bias": TENSOR | {"optional": True}},
    reference="def run(x, bias=None):\n    return 2 * x if bias is None else 2 * x + bias\n",
)


def test_an_optional_input_is_left_out_unless_the_workload_has_it(zygote):
    from bedstone.spec.workload import Random

    code = "def run(x, bias):\n    return x + x if bias is None else x + x + bias\n"
    without = workload()
    has = Workload({"n": 16}, {"bias": Random()}, "w")
    assert problem(MAYBE, without).trials[0].inputs["bias"] is None
    assert problem(MAYBE, has).trials[0].inputs["bias"] is not None
    for one in (without, has):
        assert run(zygote, code, MAYBE, one).status == "PASSED"


ADD_NORM = definition(
    name="add_norm_n",
    inputs={"x": TENSOR, "r": TENSOR, "w": TENSOR},
    outputs={"y": TENSOR | {"param": "x"}, "r": TENSOR},
    reference="import torch\n\ndef run(x, r, w):\n    s = r + x\n"
    "    return s * torch.rsqrt(s.pow(2).mean()) * w, s\n",
)
IN_PLACE = "    r.add_(x)\n    x.copy_(r * (r.pow(2).mean() ** -0.5) * w)\n"


def test_f18_outputs_in_place_are_compared_where_they_are(zygote):
    assert run(zygote, f"def run(x, r, w):\n{IN_PLACE}", ADD_NORM).status == "PASSED"
    stale = "    s = r + x\n    x.copy_(s * (s.pow(2).mean() ** -0.5) * w)\n"
    evaluation = run(zygote, f"def run(x, r, w):\n{stale}", ADD_NORM)
    assert evaluation.status == "INCORRECT_NUMERICAL"
    assert "`r`" in evaluation.log
    assert "`y`" not in evaluation.log


def test_f18_the_published_numbers():
    import torch

    from bedstone.prove.reference import Reference

    values = {"x": torch.tensor([1.0, 1.0]), "r": torch.tensor([1.0, 3.0]), "w": torch.ones(2)}
    made = Reference(ADD_NORM).run(values, {"n": 2}, 0)
    assert made["r"].tolist() == [2.0, 4.0]
    assert made["y"].tolist() == pytest.approx([0.63245553, 1.26491106])
    assert values["r"].tolist() == [1.0, 3.0]


def test_f18_bytes_moved_are_two_reads_two_writes_and_the_weights():
    from bedstone.prove.problem import moved_bytes

    assert moved_bytes(ADD_NORM, {"n": 1000}) == 4 * 1000 * (2 + 2 + 1)


def test_the_reference_is_timed_in_place_too(zygote):
    asked = problem(ADD_NORM)
    evaluation = evaluate(asked, reference_solution(ADD_NORM), zygote)
    assert evaluation.status == "PASSED", evaluation.log


# --- several outputs ---------------------------------------------------------------------------

EXTREMES = definition(
    name="extremes_n",
    outputs={n: {"shape": [], "dtype": "float32"} for n in ("largest", "smallest")},
    reference="def run(x):\n    return x.max(), x.min()\n",
)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("    return x.max(), x.min()\n", "PASSED"),
        ("    return [x.max(), x.min()]\n", "PASSED"),
        ("    return {'smallest': x.min(), 'largest': x.max()}\n", "PASSED"),
        ("    return x.min(), x.max()\n", "INCORRECT_NUMERICAL"),
        ("    return x.max(), x.min(), x.min()\n", "INCORRECT_SHAPE"),
        ("    return {'smallest': x.min(), 'biggest': x.max()}\n", "INCORRECT_SHAPE"),
    ],
)
def test_f19_outputs_come_in_order_or_by_name(zygote, code, status):
    assert run(zygote, f"def run(x):\n{code}", EXTREMES).status == status


@pytest.mark.parametrize("code", ["x.max()", "(x.max(),)", "[x.max()]", "float(x.max())"])
def test_f19_one_output_may_come_bare_or_in_a_tuple(zygote, code):
    one = definition(
        outputs={"largest": {"shape": [], "dtype": "float32"}},
        reference="def run(x):\n    return x.max()\n",
    )
    assert run(zygote, f"def run(x):\n    return {code}\n", one).status == "PASSED"


def test_f19_right_on_the_first_trial_only_is_wrong(zygote):
    code = "n = 0\ndef run(x):\n    global n\n    n += 1\n    return x + x if n == 1 else x\n"
    assert run(zygote, code).status == "INCORRECT_NUMERICAL"


# --- low precision -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "bfloat16", "float16"])
def test_low_precision_goes_in_and_out(zygote, dtype):
    tensor = {"shape": ["n"], "dtype": dtype}
    reference = f"import torch\n\ndef run(x):\n    return (x.float() / 2).to(torch.{dtype})\n"
    low = definition(inputs={"x": tensor}, outputs={"y": tensor}, reference=reference)
    good = reference.replace("/ 2", "* 0.5")
    assert run(zygote, good, low, workload(n=64)).status == "PASSED"
    bad = reference.replace("/ 2", "/ -2")
    assert run(zygote, bad, low, workload(n=64)).status == "INCORRECT_NUMERICAL"


def test_packed_fp4_is_two_values_a_byte(zygote):
    four = {"shape": ["n"], "dtype": "float4_e2m1"}
    packed = definition(
        inputs={"x": four},
        outputs={"y": four, "z": TENSOR},
        reference="import torch\n\nTABLE = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]\n\n"
        "def run(x):\n    raw = x.view(torch.uint8)\n"
        "    table = torch.tensor(TABLE + [-v for v in TABLE])\n"
        "    z = torch.stack((table[(raw & 15).long()], table[(raw >> 4).long()]), 1).flatten()\n"
        "    return (raw ^ 0x88).view(x.dtype), z\n",
    )
    good = packed.reference
    assert run(zygote, good, packed, workload(n=64)).status == "PASSED"
    kept = good.replace("raw ^ 0x88", "raw")
    assert run(zygote, kept, packed, workload(n=64)).status == "INCORRECT_NUMERICAL"
    swapped = good.replace("(raw & 15)", "(raw >> 4)")
    assert run(zygote, swapped, packed, workload(n=64)).status == "INCORRECT_NUMERICAL"


def test_an_odd_width_cannot_be_packed():
    four = {"shape": ["n"], "dtype": "float4_e2m1"}
    odd = definition(
        inputs={"x": four}, outputs={"y": four}, reference="def run(x):\n    return x\n"
    )
    with pytest.raises(Exception, match="expected an even last axis"):
        problem(odd, workload(n=15))
