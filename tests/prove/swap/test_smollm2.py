"""Kernels of a real chat model swapped, by the command: verdicts, time and memory."""

import json
import os

import pytest

from bedstone.runtime.load import read_parts
from bedstone.target.cpu import runnable
from bedstone.target.features import read_features
from bedstone.target.hardware import read_sets
from held_memory import Held, held_by, model_bytes
from packages import compiled
from smollm2 import REFERENCE
from swaps import rebuilt

pytestmark = pytest.mark.slow

SUMS = "(sums[0] + sums[1]) + (sums[2] + sums[3])"
OTHERWISE = "((sums[3] + sums[2]) + sums[1]) + sums[0]"
CUBE = "    p = vf_fma(p, r, vf_set(0.5f));\n"
CUT = "    p = vf_set(0.5f);\n"
"""e^r cut after its square: up to 0.7e-2 off."""

ALIKE = ("cpu-x86-64-v4", "cpu-x86-64-v3", "cpu-generic")
"""Sets that compute alike, in float32; others round what attention multiplies to sixteen bits."""

SHORT = {"context": 512}
"""Enough where no figure is of the whole context."""

BUSY = 2 * 60.0
"""Seconds of two cores in a minute."""


@pytest.fixture(scope="module")
def quantized(tmp_path_factory, cache):
    return compiled(REFERENCE, tmp_path_factory.mktemp("smollm2") / "short", cache, **SHORT).path


@pytest.fixture(scope="module")
def swapped(cache):
    def run(*command: str) -> Held:
        environment = {**os.environ, "BEDSTONE_CACHE": str(cache)}
        return held_by(["prove", "swap", *map(str, command)], environment)

    return run


def test_a_sum_in_another_order_passes_in_time_and_memory(cache, swapped, tmp_path):
    edit = ("norm.h", SUMS, OTHERWISE)
    whole = compiled(REFERENCE, tmp_path / "a", cache).path
    other = rebuilt(whole, tmp_path / "b", "norm", edit, numerics="quantized")
    found = swapped(whole, other)
    assert found.busy < BUSY
    assert found.most < 2 * model_bytes(read_parts(whole).manifest)
    assert found.code == 0, found.stdout
    assert found.stdout.splitlines()[-1].startswith("PASS: logit evidence")
    # at the end of the context too
    assert "perf: decode, 1 rows at 8192: A " in found.stdout


def test_an_exp_that_is_cut_fails_and_its_op_is_named(quantized, swapped, tmp_path):
    edit = ("vector.h", CUBE, CUT)
    (module,) = (m for m in read_parts(quantized).manifest.modules if m.startswith("attention"))
    other = rebuilt(quantized, tmp_path / "b", module, edit, numerics="quantized")
    found = swapped(quantized, other, "--no-perf")
    assert found.code == 1, found.stdout
    lines = found.stdout.splitlines()
    assert lines[-1].startswith("FAIL: drift")
    worst = next(line for line in lines if line.startswith("replay: "))
    assert "`attention" in worst


def test_every_kernel_at_once_is_judged_call_by_call(cache, swapped, tmp_path):
    able = [name for name in runnable(read_sets(), read_features()) if name in ALIKE]
    b, a = (
        compiled(REFERENCE, tmp_path / name, cache, target=name, **SHORT).path for name in able[:2]
    )
    found = swapped(a, b, "--no-perf", "--json")
    assert found.busy < BUSY
    assert found.code == 0, found.stdout
    kept = json.loads(found.stdout)
    assert kept["verdict"]["rule"] == "logit evidence"
    assert {len(span["a"]) for span in kept["spans"]} == {1}
    assert {op for span in kept["spans"] for op in span["a"]} == {op["op"] for op in kept["ops"]}


def test_precise_and_quantized_are_compared_by_their_logits(quantized, cache, swapped, tmp_path):
    precise = compiled(REFERENCE, tmp_path / "precise", cache, numerics="precise", **SHORT).path
    found = swapped(precise, quantized, "--no-perf", "--json")
    kept = json.loads(found.stdout)
    assert kept["verdict"]["rule"] in {"flip", "undecided"}
    logits = kept["evidence"]["logits"]
    divergences = sorted(map(float, logits["divergences"]))
    # eight bits leave nine rows of ten this near; what the second token says hangs on less
    assert 1e-3 < divergences[int(0.9 * len(divergences))] < 0.05
    assert len(kept["resized"]) == 60
