"""Kernels edited in ways whose effect is known: each swap is judged right."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bedstone.cli.app import app
from bedstone.errors import KernelError
from bedstone.prove.swap.report import lines
from bedstone.prove.swap.swap import Proof, Settings, prove_swap
from bedstone.prove.swap.verdict import Bounds
from bedstone.runtime.load import read_parts
from swaps import Edit, rebuilt

STORE = "vf_store_n(y + i, bs_normed(x, w, norm, factor, i, n), n);"
NORMED = "return vf_load_n(x + i, n) * factor * (offset + vf_load_n(w + i, n));"
ROW = "    if (out.q.codes) bs_quantize_row("
ARGMAX_CRASH = (
    "argmax.c",
    "    *error = !finite;\n",
    "    if (rows > 2) *(volatile int *)8 = 1;\n",
)
SEEN = "q->last = a->position[row]"
PICK = "    return found;\n}"
PIECE = "        attend_part(&a, t,"


def norm(new: str) -> tuple[str, Edit]:
    return "norm", ("norm.h", NORMED, new)


def seen(less: str) -> tuple[str, Edit]:
    """Attention that does not see the last position where `less` holds."""
    return "attention", ("attention.h", SEEN, f"{SEEN} - ({less})")


def reused(old: str) -> tuple[str, Edit]:
    """Norms to which what lay in their output before is added as `old`."""
    wrong = STORE.replace("factor, i, n), n", f"factor, i, n) + {old}, n")
    return "norm", ("norm.h", STORE, f"vf old = vf_load_n(y + i, n); {wrong}")


def row(code: str) -> tuple[str, Edit]:
    return "norm", ("norm.c", ROW, f"    {code}\n{ROW}")


EDITS: dict[str, tuple[str, str, tuple[str, Edit]]] = {
    "no-op rebuild": (
        "PASS",
        "bit-identical",
        row('static const char mark[] __attribute__((used)) = "built again"; BS_UNUSED(mark);'),
    ),
    "signed zero": (
        "PASS",
        "value-identical",
        norm("return vf_load_n(x + i, n) * factor * (offset + vf_load_n(w + i, n)) + 0.0f;"),
    ),
    "one rounding": (
        "PASS",
        "logit evidence",
        norm("return vf_load_n(x + i, n) * (factor * (offset + vf_load_n(w + i, n)));"),
    ),
    "five percent": (
        "FAIL",
        "drift",
        norm("return vf_load_n(x + i, n) * factor * (offset + vf_load_n(w + i, n)) * 1.05f;"),
    ),
    "not a number": (
        "FAIL",
        "not finite",
        row('if (x[0] > 1.5f) y[0] = __builtin_nanf("");'),
    ),
    "outside the write set": ("FAIL", "outside", row("if (!row) y[70 * width] = 1.0f;")),
    "page edge": ("FAIL", "drift", seen("a->position[row] % 32 == 31")),
    "past one tile": (
        "FAIL",
        "drift",
        ("attention", ("attention.h", "*sum = *sum * by[0] +", "*sum = *sum +")),
    ),
    "above 4,096 positions": ("FAIL", "drift", seen("a->position[row] > 4095")),
    "end of the context": ("INCONCLUSIVE", "uneven", seen("a->position[row] == 4199")),
    "second of a batch": (
        "FAIL",
        "drift",
        (
            "attention",
            (
                "attention.c",
                PIECE,
                "        bs_attention mine = a;\n"
                "        if (p.stride && t.row == 1) mine.scale *= 1.25f;\n"
                f"{PIECE.replace('&a', '&mine')}",
            ),
        ),
    ),
    "stale read": ("FAIL", "not finite", reused("0.0f * old")),
    "stale read of numbers alone": (
        "FAIL",
        "stale",
        reused("vf_select(old == old, 1e-18f * old, (vf){0})"),
    ),
    "out of domain": (
        "FAIL",
        "domain",
        ("argmax", ("search.h", PICK, PICK.replace("return", "found.index += 61;\n    return"))),
    ),
    "not repeatable": (
        "INCONCLUSIVE",
        "restless",
        row("static int calls; if (!(__atomic_fetch_add(&calls, 1, 5) % 7)) y[0] *= 1.00001f;"),
    ),
    "a table's sine": (
        "FAIL",
        "drift",
        ("rope-table", ("rope_table.c", "p * z + 1.0 / 120.0", "p * z - 1.0 / 120.0")),
    ),
    # 7e-5 off at 45 degrees, and 6e-7
    "a table's sine, a little": (
        "INCONCLUSIVE",
        "lasting",
        ("rope-table", ("rope_table.c", "p * z - 1.0 / 5040.0", "p * z + 1.0 / 5040.0")),
    ),
    "a table's sine, least of all": (
        "INCONCLUSIVE",
        "lasting",
        ("rope-table", ("rope_table.c", "p * z + 1.0 / 362880.0", "p * z - 1.0 / 362880.0")),
    ),
    "crash": (
        "FAIL",
        "crash",
        row("if (x[0] > 1.5f) *(volatile int *)8 = 1;"),
    ),
    "other picks": (
        "FAIL",
        "picks",
        ("argmax", ("search.h", PICK, PICK.replace("return", "found.index ^= 1;\n    return"))),
    ),
}


def judged(package: Path, other: Path, cache: Path, seconds: float = 60.0) -> Proof:
    settings = Settings(Bounds(), cache, seconds=seconds)
    return prove_swap(read_parts(package), read_parts(other), settings, lambda _: None)


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_kernel_is_judged(name, package, cache, tmp_path):
    word, rule, (module, edit) = EDITS[name]
    proof = judged(package, rebuilt(package, tmp_path / "b", module, edit), cache)
    assert (proof.verdict.word, proof.verdict.rule) == (word, rule), proof.evidence
    assert proof.evidence.steady


def test_a_crash_while_loading_names_what_loading_runs_anew(package, cache, tmp_path):
    edit = (
        "rope_table.c",
        "double factor = bs_f32(&at);",
        "double factor = bs_f32(&at); *(volatile int *)8 = 1;",
    )
    proof = judged(package, rebuilt(package, tmp_path / "b", "rope-table", edit), cache)
    assert (proof.verdict.word, proof.verdict.rule) == ("FAIL", "crash")
    (line,) = (line for line in lines(proof) if line.startswith("crash: "))
    assert line.startswith("crash: SIGSEGV while loading, which runs `rope_table")
    assert line.endswith("anew")


def test_memory_of_a_devices_own_is_judged_alike(package, cache, tmp_path, monkeypatch):
    word, rule, (module, edit) = EDITS["one rounding"]
    other = rebuilt(package, tmp_path / "b", module, edit)
    here = judged(package, other, cache)
    monkeypatch.setattr("bedstone.runtime.stepper._ADDRESSED", ())
    there = judged(package, other, cache)
    assert (there.verdict.word, there.verdict.rule) == (word, rule)
    assert there.results == here.results
    assert there.evidence == here.evidence


def test_a_that_crashes_is_no_side_to_hold_b_against(package, cache, tmp_path):
    other = rebuilt(package, tmp_path / "a", "argmax", ARGMAX_CRASH)
    with pytest.raises(
        KernelError, match=r"^A, .* ends by SIGSEGV in op `argmax_rows\(rows=seqs\)`"
    ):
        judged(other, package, cache)


def test_kernels_that_are_gone_are_not_alike(package, cache, tmp_path):
    other = tmp_path / "b"
    shutil.copytree(package, other)
    module = min((other / "kernels").iterdir())
    module.write_bytes(module.read_bytes()[:-1])
    for a, b in ((package, other), (other, package)):
        with pytest.raises(KernelError, match="the file changed after it was compiled"):
            judged(a, b, cache)


def test_a_crash_names_the_op_and_the_call(package, cache, tmp_path):
    other = rebuilt(package, tmp_path / "b", "argmax", ARGMAX_CRASH)
    proof = judged(package, other, cache)
    assert proof.crash is not None
    assert (proof.crash.how, proof.crash.ops) == ("SIGSEGV", ("argmax_rows(rows=seqs)",))
    assert proof.crash.stop == proof.crash.start + 1
    assert any(line.startswith("crash: SIGSEGV in op `argmax_rows(") for line in lines(proof))


def test_a_kernel_that_never_ends_is_inconclusive_and_named(package, cache, tmp_path):
    _, edit = row('while (x[0] > 1.5f) __asm__ volatile("");')
    other = rebuilt(package, tmp_path / "b", "norm", edit)
    proof = judged(package, other, cache, seconds=4.0)
    assert (proof.verdict.word, proof.verdict.rule) == ("INCONCLUSIVE", "stalled")
    assert proof.crash is not None
    assert all("norm" in op for op in proof.crash.ops)


def test_the_command_tells_keeps_and_shows_a_proof(package, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("BEDSTONE_CACHE", str(cache))
    _, _, (module, edit) = EDITS["five percent"]
    other, kept = rebuilt(package, tmp_path / "b", module, edit), tmp_path / "proof.json"
    swapped = CliRunner().invoke(
        app, ["prove", "swap", str(package), str(other), "--out", str(kept)]
    )
    lines = swapped.stdout.splitlines()
    assert (swapped.exit_code, lines[-1].split(":")[:2]) == (1, ["FAIL", " drift"])
    worst = next(line for line in lines if line.startswith("replay: "))
    assert "norm(rows=" in worst
    # norms of layers are told once for all of them
    spans = [line for line in lines if line.startswith("diff: span decode#")]
    assert len(spans) == len({line.partition("`")[2] for line in spans})
    assert any(" alike: `" in line for line in spans)
    shown = CliRunner().invoke(app, ["prove", "show", str(kept)])
    assert (shown.exit_code, shown.stdout) == (1, swapped.stdout)
    assert json.loads(kept.read_text())["verdict"]["rule"] == "drift"


def test_a_full_disk_leaves_what_was_told(package, cache, monkeypatch):
    monkeypatch.setenv("BEDSTONE_CACHE", str(cache))
    found = CliRunner().invoke(
        app, ["prove", "swap", str(package), str(package), "--out", "/dev/full"]
    )
    assert found.exit_code == 2
    assert found.stdout.splitlines()[-1] == "PASS: identical: nothing differs, nothing to test"
    assert found.stderr.endswith("`/dev/full` cannot be written: No space left on device\n")


def test_a_proof_is_the_same_another_time(package, cache, tmp_path):
    """In processes that order sets in their own ways."""
    _, _, (module, edit) = EDITS["one rounding"]
    other = rebuilt(package, tmp_path / "b", module, edit)
    kept = []
    for seed in ("1", "2"):
        command = ["prove", "swap", str(package), str(other), "--no-perf", "--json"]
        done = subprocess.run(
            [sys.executable, "-c", "from bedstone.cli import main; main()", *command],
            env={**os.environ, "BEDSTONE_CACHE": str(cache), "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        kept.append(json.loads(done.stdout))
    assert kept[0] == kept[1]


def test_a_package_against_itself_has_nothing_to_test(package, cache):
    proof = judged(package, package, cache)
    assert (proof.verdict.word, proof.verdict.rule) == ("PASS", "identical")
