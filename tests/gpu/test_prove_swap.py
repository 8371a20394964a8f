"""`bedstone prove` on the GPU: edited kernels whose effect is known, each by a command of its own.

What forks must not have opened a GPU, and these tests' process may have.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpu_swaps import Edit, rebuilt
from packages import compiled
from swaps import write_model

CONTEXT = 4200
"""More than 4,096 positions, and the last of them inside a page."""

COMMAND = "from bedstone.cli import main; main()"

WEIGHED = "return __fmul_rn(__fmul_rn(x, by), plus_one ? __fadd_rn(1.0f, weight) : weight);"
WEIGHT = "plus_one ? __fadd_rn(1.0f, weight) : weight"
GIVE = "out.give(start + i, v);"
NORM_ENDS = "    in_packs(by_four(width, norm.unit), run);\n"
SEES = "Span span = span_of(a.position[row], a.window);"
BLOCKS_BEST = "    __syncthreads();\n    return best;\n}"
LAST = "BS_KERNEL(THREADS) quantize("


def norm(new: str) -> tuple[str, Edit]:
    return "norm", ("norm.cuh", WEIGHED, new)


def after_a_row(code: str) -> tuple[str, Edit]:
    return "norm", ("norm.cu", NORM_ENDS, f"{NORM_ENDS}    {code}\n")


def reused(old: str) -> tuple[str, Edit]:
    """Norms to which what lay in their output before is added as `old`."""
    read = "float was = out.y ? out.y[start + i] : 0.0f;"
    return "norm", ("norm.cu", GIVE, f"{read} v.at[0] += {old}; {GIVE}")


def seen(less: str) -> tuple[str, Edit]:
    """Attention that does not see the last position where `less` holds."""
    fewer = SEES.replace("a.position[row]", f"a.position[row] - ({less})")
    return "attention-attention", ("attention.cuh", SEES, fewer)


def picked(code: str) -> tuple[str, Edit]:
    changed = f"    __syncthreads();\n    if (best.index < 61) {code}\n    return best;\n}}"
    return "argmax", ("argmax.cu", BLOCKS_BEST, changed)


EDITS: dict[str, tuple[str, str, tuple[str, Edit]]] = {
    "no-op rebuild": (
        "PASS",
        "bit-identical",
        ("norm", ("norm.cu", LAST, f"BS_KERNEL(32) built_again() {{}}\n\n{LAST}")),
    ),
    "signed zero": (
        "PASS",
        "value-identical",
        norm(f"return __fadd_rn(__fmul_rn(__fmul_rn(x, by), {WEIGHT}), 0.0f);"),
    ),
    "one rounding": (
        "PASS",
        "logit evidence",
        norm(f"return __fmul_rn(x, __fmul_rn(by, {WEIGHT}));"),
    ),
    "five percent": ("FAIL", "drift", norm(WEIGHED.replace(";", " * 1.05f;"))),
    "not a number": ("FAIL", "not finite", norm(f"if (x > 1.5f) by = 0.0f / 0.0f; {WEIGHED}")),
    "outside the write set": (
        "FAIL",
        "outside",
        after_a_row("if (!blockIdx.x && !threadIdx.x && out.y) out.y[70 * width] = 1.0f;"),
    ),
    "page edge": ("FAIL", "drift", seen("a.position[row] % 32 == 31")),
    "a running sum that is not scaled": (
        "FAIL",
        "drift",
        (
            "attention-attention",
            ("attend_any.cuh", "sum[i] = fmaf(sum[i], shrink, weight);", "sum[i] += weight;"),
        ),
    ),
    "above 4,096 positions": ("FAIL", "drift", seen("a.position[row] > 4095")),
    "end of the context": ("INCONCLUSIVE", "uneven", seen("a.position[row] == 4199")),
    "second of a batch": ("FAIL", "drift", seen("row == 1 && gridDim.x < 4")),
    "stale read": ("FAIL", "not finite", reused("0.0f * was")),
    "stale read of numbers alone": ("FAIL", "stale", reused("was == was ? 1e-18f * was : 0.0f")),
    "out of domain": ("FAIL", "domain", picked("best.index += 61;")),
    "other picks": ("FAIL", "picks", picked("best.index -= best.index ? 1 : -1;")),
    "not repeatable": (
        "INCONCLUSIVE",
        "restless",
        after_a_row(
            "static __device__ int calls;"
            " if (!threadIdx.x && out.y && atomicAdd(&calls, 1) % 7 == 0)"
            " out.y[start] *= 1.00001f;"
        ),
    ),
    "a table's sine": (
        "FAIL",
        "drift",
        ("rope-table", ("rope_table.cu", "(float)(s * (double)factor)", "1.002f * (float)s")),
    ),
    "a write to no memory": (
        "FAIL",
        "crash",
        norm(f"if (x > 1.5f) *(volatile int *)8 = 1; {WEIGHED}"),
    ),
}


@dataclass(frozen=True)
class Ended:
    """How a command ended, and the document that it printed."""

    code: int
    document: dict[str, Any]

    @property
    def lines(self) -> list[str]:
        return self.document["lines"]


@pytest.fixture(scope="module")
def package(tmp_path_factory, cache, target) -> Path:
    """A llama of a long context whose norms have a weight of zero: zeros of both signs occur."""
    folder = tmp_path_factory.mktemp("swap")
    checkpoint = write_model(folder / "checkpoint", CONTEXT)
    options = {"numerics": "precise", "sequences": 3}
    return compiled(checkpoint, folder / "package", cache, target, **options).path


def prove(cache: Path, *arguments: str | Path) -> Ended:
    ended = subprocess.run(
        [
            sys.executable,
            "-c",
            COMMAND,
            "prove",
            *map(str, arguments),
            "--device",
            "cuda",
            "--json",
        ],
        env={**os.environ, "BEDSTONE_CACHE": str(cache)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode in {0, 1, 2}, ended.stderr
    assert ended.stdout, ended.stderr
    return Ended(ended.returncode, json.loads(ended.stdout))


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_kernel_is_judged(name, package, target, cache, tmp_path):
    word, rule, (module, edit) = EDITS[name]
    other = rebuilt(package, tmp_path / "b", target, module, edit)
    ended = prove(cache, "swap", package, other, "--no-perf")
    found = ended.document["verdict"]
    assert (found["word"], found["rule"]) == (word, rule), ended.lines
    assert ended.code == {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 2}[word]


def test_a_fault_names_the_op_and_what_the_driver_says(package, target, cache, tmp_path):
    _, _, (module, edit) = EDITS["a write to no memory"]
    ended = prove(cache, "swap", package, rebuilt(package, tmp_path / "b", target, module, edit))
    (line,) = (line for line in ended.lines if line.startswith("crash: "))
    assert "illegal" in line.lower()
    assert "in op `norm(" in line or "in op `add_norm(" in line or "in op `norm_f(" in line


def test_both_sides_are_timed_beside_the_memorys_own_rate(package, target, cache, tmp_path):
    _, _, (module, edit) = EDITS["one rounding"]
    ended = prove(cache, "swap", package, rebuilt(package, tmp_path / "b", target, module, edit))
    perf = ended.document["perf"]
    assert perf["bandwidth"] > 1e11
    timed = {(s["program"], s["longest"]) for s in perf["steps"]}
    assert ("decode", CONTEXT) in timed
    assert all(0 < step["a"] < 1 for step in perf["steps"])


@pytest.mark.slow
def test_a_change_among_two_is_found(package, target, cache, tmp_path):
    right, wrong = (EDITS[name][2] for name in ("one rounding", "a table's sine"))
    one = rebuilt(package, tmp_path / "one", target, *right)
    both = rebuilt(one, tmp_path / "both", target, *wrong)
    ended = prove(cache, "swap", package, both, "--bisect", "--no-perf")
    (line,) = (line for line in ended.lines if line.startswith("bisect: ") and " alone: " in line)
    assert "`rope_table" in line
    assert "norm" not in line


def test_an_op_is_held_against_its_definition(package, target, cache, tmp_path):
    op = "norm_f(rows=tokens,width=32)"
    good = prove(cache, "kernel", package, op)
    assert (good.code, good.document["verdict"]) == (0, "PASS")
    wrong = rebuilt(package, tmp_path / "b", target, *norm(WEIGHED.replace(";", " * 1.05f;")))
    bad = prove(cache, "kernel", wrong, op)
    assert (bad.code, bad.document["verdict"]) == (1, "FAIL")


@pytest.mark.slow
def test_every_op_of_a_package_is_right(package, cache):
    ended = prove(cache, "package", package)
    words = {each["op"]: each["word"] for each in ended.document["ops"]}
    assert set(words.values()) == {"PASS"}, words
    assert len(words) > 30
