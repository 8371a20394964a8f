"""Solutions held against Definitions with the candidate on the GPU."""

import pytest

from bedstone.prove.baseline import reference_solution
from bedstone.prove.environment import flush_bytes
from bedstone.prove.evaluate import evaluate
from bedstone.prove.sandbox.zygote import Zygote
from bedstone.spec.solution import BuildSpec, Solution, SourceFile
from bedstone.spec.workload import Workload
from definitions import definition, workload
from prove.runs import problem, run


@pytest.fixture(scope="module")
def zygote():
    with Zygote() as running:
        yield running


GEMM = definition(
    name="gemm_n4096_k4096",
    axes={"m": {"type": "var"}, "k": {"type": "const", "value": 4096}},
    inputs={
        "a": {"shape": ["m", "k"], "dtype": "bfloat16"},
        "b": {"shape": ["k", "k"], "dtype": "bfloat16"},
    },
    outputs={"c": {"shape": ["m", "k"], "dtype": "bfloat16"}},
    reference="def run(a, b):\n    return a @ b.T\n",
)
SQUARE = Workload({"m": 4096}, {}, "w")
CUDA = {"device": "cuda", "trials": 1, "samples": 1, "iterations": 12}


def test_a_solution_runs_on_the_gpu_and_is_timed_by_its_events(zygote):
    evaluation = run(zygote, "def run(x):\n    assert x.is_cuda\n    return x * 2\n", device="cuda")
    assert evaluation.status == "PASSED", evaluation.log
    timing = evaluation.record["timing"]
    assert timing["method"] == "CUDA events, launches hidden behind a delay"
    assert "NVIDIA" in evaluation.environment.hardware


def test_a_result_left_on_the_cpu_is_refused(zygote):
    evaluation = run(zygote, "def run(x):\n    return (x * 2).cpu()\n", device="cuda")
    assert evaluation.status == "INCORRECT_DTYPE"
    assert "expected it on `cuda`" in evaluation.log


def test_outputs_are_filled_and_inputs_watched_on_the_gpu(zygote):
    filled = "import torch\ndef run(x, y):\n    torch.mul(x, 2, out=y)\n"
    assert run(zygote, filled, passing=True, device="cuda").status == "PASSED"
    half = "import torch\ndef run(x, y):\n    y[:8] = x[:8] * 2\n"
    assert run(zygote, half, passing=True, device="cuda").status == "INCORRECT_NUMERICAL"
    spoilt = "def run(x):\n    y = x * 2\n    x.zero_()\n    return y\n"
    evaluation = run(zygote, spoilt, device="cuda")
    assert "input `x` was modified" in evaluation.log


@pytest.mark.slow
def test_f05_work_on_another_stream_is_seen(zygote):
    asked = problem(GEMM, SQUARE, **CUDA)
    honest = evaluate(asked, reference_solution(GEMM), zygote)
    assert honest.status == "PASSED", honest.log
    # 1.37e11 operations
    assert honest.outcome.performance.latency_ms > 0.137
    aside = (
        "import torch\nSIDE = []\ndef run(a, b):\n"
        "    SIDE or SIDE.append(torch.cuda.Stream())\n"
        "    SIDE[0].wait_stream(torch.cuda.current_stream())\n"
        "    with torch.cuda.stream(SIDE[0]):\n"
        "        for _ in range(4):\n            c = a @ b.T\n    return c\n"
    )
    evaluation = run(zygote, aside, GEMM, SQUARE, **CUDA)
    assert evaluation.status == "REWARD_HACK"
    assert "beside the timed stream" in evaluation.log


@pytest.mark.slow
def test_f12_a_cold_cache_is_slower_than_a_warm_one(zygote):
    small = workload(n=2**20)
    double = "import torch\ndef run(x, y):\n    torch.mul(x, 2, out=y)\n"
    times = {}
    for cold in (True, False):
        asked = {"device": "cuda", "cold": cold, "iterations": 30}
        evaluation = run(zygote, double, None, small, passing=True, **asked)
        assert evaluation.status == "PASSED", evaluation.log
        timing = evaluation.record["timing"]
        assert timing["cache"] == ("cold" if cold else "warm")
        times[cold] = timing["steady_ms"]["p50"]
    assert times[True] > times[False]
    assert flush_bytes("cuda") >= 2 * 40 * 2**20


COMPILED = r"""
#include <torch/extension.h>

__global__ void twice(const float *x, float *y, int64_t n)
{
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

void run(torch::Tensor x, torch::Tensor y)
{
    int64_t n = x.numel();
    twice<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""


@pytest.mark.slow
def test_a_solution_in_cuda_is_built_and_run(zygote):
    spec = BuildSpec(("cuda",), ("H200",), "main.cu::run", binding="torch")
    candidate = Solution("compiled", "double_n", "tester", spec, (SourceFile("main.cu", COMPILED),))
    asked = problem(on=workload(n=1000), device="cuda", seconds=280.0)
    evaluation = evaluate(asked, candidate, zygote)
    assert evaluation.status == "PASSED", evaluation.log
