"""Ops held against their Definitions: right ones pass, each way of being wrong fails."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from bedstone.cli.app import app
from bedstone.prove.kernel.prove import Settings, prove_ops
from bedstone.prove.kernel.report import overall, table, worst_of
from bedstone.runtime.load import read_parts
from prove.kernel.conftest import tiny
from swaps import rebuilt

NORM = "norm(rows=tokens,width=32)"
ROW = "    if (out.q.codes) bs_quantize_row("
NORMED = "return vf_load_n(x + i, n) * factor * (offset + vf_load_n(w + i, n));"
STORE = "vf_store_n(y + i, bs_normed(x, w, norm, factor, i, n), n);"


def judged(package, cache, *ops, manifest=None):
    parts = read_parts(package)
    parts = replace(parts, manifest=manifest or parts.manifest)
    return list(prove_ops(parts, ops or list(parts.manifest.ops), Settings(cache), lambda _: None))


def row(code):
    return "norm.c", ROW, f"    {code}\n{ROW}"


EVERY = ["llama", "qwen3.5", "qwen3-moe", "deepseek-v3"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", EVERY)
def test_every_op_of_a_package_is_right(kind, cache, tmp_path):
    proofs = judged(tiny(kind, "precise", tmp_path, cache), cache)
    assert overall(proofs) == "PASS", "\n".join(table(proofs))


@pytest.mark.slow
def test_the_ops_of_a_sampler_are_right_and_write_what_they_are_asked_for(cache, tmp_path):
    package = tiny("llama", "precise", tmp_path, cache, sampler=True)
    ops = [name for name in read_parts(package).manifest.ops if name.startswith(("sample", "fin"))]
    proofs = judged(package, cache, *ops)
    assert len(proofs) == 8
    assert overall(proofs) == "PASS", "\n".join(table(proofs))
    assert all(any("program" in call.where for call in proof.calls) for proof in proofs)


def test_a_right_op_passes_on_recorded_calls_and_on_made_inputs(package, cache):
    (proof,) = judged(package, cache, NORM)
    assert (proof.word, proof.notes) == ("PASS", ())
    where = [call.where for call in proof.calls]
    assert sum(each.startswith("program `prefill` call ") for each in where) == 3
    assert {"made inputs 0, tokens=1", "made inputs 1, tokens=37"} < set(where)


@pytest.mark.parametrize(
    "edit",
    [
        ("norm.h", NORMED, NORMED.replace("* factor", "* factor * 1.01f")),
        row('if (x[0] > 1.0f) y[3] = __builtin_nanf("");'),
        ("norm.h", STORE, STORE.replace("vf_store_n(y + i", "if (i != 0) vf_store_n(y + i")),
    ],
    ids=["one percent", "not a number", "values left out"],
)
def test_a_wrong_op_fails_with_the_place_of_the_worst_error(edit, package, cache, tmp_path):
    other = rebuilt(package, tmp_path / "b", "norm", edit)
    (proof,) = judged(other, cache, NORM)
    assert proof.word == "FAIL"
    _, found = worst_of(proof)
    assert len(found.metrics.worst) == 2
    assert not found.metrics.fits


def test_a_write_behind_an_output_fails(package, cache, tmp_path):
    other = rebuilt(package, tmp_path / "b", "norm", row("y[width] = 1.0f;"))
    (proof,) = judged(other, cache, NORM)
    assert proof.word == "FAIL"
    assert "wrote behind `y`" in {fault for call in proof.calls for fault in call.faults}


def test_a_crash_fails_the_op_that_crashed_alone(package, cache, tmp_path):
    other = rebuilt(package, tmp_path / "b", "norm", row("*(volatile int *)8 = 1;"))
    norm, add = judged(other, cache, NORM, "argmax(rows=1)")
    assert norm.word == "FAIL"
    assert {call.where for call in norm.calls if "SIGSEGV" in str(call.faults)} == {
        "recorded",
        "made inputs 0, tokens=1",
    }
    assert add.word == "PASS"
    assert "no call recorded: SIGSEGV in op `norm(" in add.notes[0]


def test_an_op_that_the_library_does_not_know_is_inconclusive(package, cache):
    manifest = read_parts(package).manifest
    op = manifest.ops[NORM]
    (launch,) = op.impl.launches
    other = replace(op, impl=replace(op.impl, launches=(replace(launch, entry="foreign"),)))
    known = replace(manifest, ops={**manifest.ops, NORM: other})
    (proof,) = judged(package, cache, NORM, manifest=known)
    assert (proof.word, proof.calls) == ("INCONCLUSIVE", ())
    assert "the library has no kernel `foreign` of module `norm`" in proof.reason


def test_the_commands_tell_the_worst_error(package, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("BEDSTONE_CACHE", str(cache))
    run = CliRunner().invoke
    good = run(app, ["prove", "kernel", str(package), NORM])
    assert good.exit_code == 0
    assert good.stdout.splitlines()[-1].startswith("PASS: 7 calls are right; worst: ")
    edit = ("norm.h", NORMED, NORMED.replace("* factor", "* factor * 1.01f"))
    other = rebuilt(package, tmp_path / "b", "norm", edit)
    bad = run(app, ["prove", "kernel", str(other), NORM, "--json"])
    assert bad.exit_code == 1
    assert json.loads(bad.stdout)["ops"][0]["calls"][0]["outputs"][0]["output"] == "y"
    unknown = run(app, ["prove", "kernel", str(package), "nothing"])
    assert unknown.exit_code == 2
    assert "no op `nothing` in the manifest; there are" in unknown.stderr


@pytest.mark.slow
def test_a_package_is_a_table_with_the_ops_that_fail(package, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("BEDSTONE_CACHE", str(cache))
    other = rebuilt(package, tmp_path / "b", "norm", row("y[width] = 1.0f;"))
    found = CliRunner().invoke(app, ["prove", "package", str(other)])
    assert found.exit_code == 1
    rows = found.stdout.splitlines()
    failed = {line.split()[1] for line in rows[1:-1] if line.startswith("FAIL")}
    assert failed
    assert all("norm" in op for op in failed)
    assert rows[-1].startswith("FAIL: 36 ops: ")
    assert "prove: op 36 of 36" in found.stderr
