"""A failed swap taken apart: by ops, by stretches, by rules of the lane."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bedstone.cli.app import app
from bedstone.lane.plan import RULES
from bedstone.prove.bisect.find import bisect, hybrids, lines
from bedstone.prove.bisect.graft import changes_of, graft
from bedstone.prove.swap.diff import diff
from bedstone.prove.swap.swap import Proof
from bedstone.prove.swap.verdict import Evidence, Verdict
from bedstone.runtime.load import read_parts
from bedstone.spec.codec import serialize
from bedstone.spec.package import Lock, parse_lock
from bedstone.verify import verify
from packages import compiled
from swaps import rebuilt

NORMED = "return vf_load_n(x + i, n) * factor * (offset + vf_load_n(w + i, n));"
WORSE = ("norm.h", NORMED, NORMED.replace("* factor", "* factor * 1.05f"))
MARK = 'static const char mark[] __attribute__((used)) = "again";'
AGAIN = ("argmax.c", "BS_KERNEL(argmax,", f"{MARK}\nBS_KERNEL(argmax,")
FLIPPED = ("argmax.c", "next[r] = found.index;", "next[r] = found.index ^ 1;")


def swapped(cache, monkeypatch, *arguments):
    monkeypatch.setenv("BEDSTONE_CACHE", str(cache))
    return CliRunner().invoke(app, ["prove", "swap", *map(str, arguments)])


def told(found):
    return [line for line in found.stdout.splitlines() if line.startswith("bisect: ")]


def failed(a, b):
    """A failed proof of which nothing but the differences counts."""
    found = diff(verify(a.manifest).manifest, verify(b.manifest).manifest)
    return Proof(found, (), (), Evidence(), Verdict("FAIL", "drift", "too far"))


@pytest.mark.slow
def test_the_op_that_fails_is_named_among_those_that_changed(package, cache, tmp_path, monkeypatch):
    other = rebuilt(package, tmp_path / "b", "argmax", FLIPPED)
    kept = tmp_path / "proof.json"
    found = swapped(cache, monkeypatch, package, other, "--bisect", "--out", kept)
    assert found.exit_code == 1
    assert told(found) == [
        "bisect: 3 changes, 2 hybrids judged",
        "bisect: `argmax_rows(rows=seqs)` alone: FAIL: picks: B chooses other integers than A",
        "bisect: all other changes: PASS: bit-identical: every span equals A's bit for bit, every "
        "logit in value",
    ]
    assert found.stdout.splitlines()[-1].startswith("FAIL: ")
    culprits = json.loads(kept.read_text())["bisect"]["culprits"]
    assert [culprit["changes"] for culprit in culprits] == [["argmax_rows(rows=seqs)"]]


@pytest.mark.slow
def test_every_op_that_fails_alone_is_found_and_the_others_pass(
    package, cache, tmp_path, monkeypatch
):
    again = rebuilt(package, tmp_path / "again", "argmax", AGAIN)
    other = rebuilt(again, tmp_path / "b", "norm", WORSE)
    found = swapped(cache, monkeypatch, package, other, "--bisect")
    first, *culprits, last = told(found)
    assert "bisect: 9 changes, " in first
    assert last.startswith("bisect: all other changes: PASS: bit-identical")
    named = {line.split("`")[1] for line in culprits}
    assert {name.split("(")[0] for name in named} == {"norm", "add_norm"}
    assert len(named) == 6


def test_nothing_is_taken_apart_where_nothing_fails(package, cache, tmp_path, monkeypatch):
    other = rebuilt(package, tmp_path / "b", "argmax", AGAIN)
    found = swapped(cache, monkeypatch, package, other, "--bisect")
    assert found.exit_code == 0
    assert told(found) == ["bisect: nothing fails"]


def renamed(package: Path, out: Path) -> Path:
    """The package with the norms of a prefill done by an op of another name, and one rebuilt."""
    other = rebuilt(package, out, "norm", WORSE)
    manifest = read_parts(other).manifest
    first = "norm(rows=tokens,width=32)"
    ops = {**manifest.ops, "normed": manifest.ops[first]}
    del ops[first]
    programs = {
        name: replace(
            program,
            calls=tuple(replace(c, op="normed") if c.op == first else c for c in program.calls),
        )
        for name, program in manifest.programs.items()
    }
    whole = replace(manifest, ops=ops, programs=programs)
    (other / "manifest.json").write_text(serialize(whole))
    return other


def test_a_stretch_is_put_in_the_place_of_another(package, tmp_path):
    a, b = read_parts(package), read_parts(renamed(package, tmp_path / "b"))
    changes = changes_of(diff(a.manifest, b.manifest))
    stretch = "norm(rows=tokens,width=32) -> normed"
    assert stretch in changes.names
    assert changes.fixed == ()
    made = verify(graft(a.manifest, b.manifest, changes, frozenset({stretch}))).manifest
    assert made.ops["normed"].impl.launches[0].module == "b.norm"
    assert "norm(rows=tokens,width=32)" not in made.ops
    assert made.modules["b.norm"] == b.manifest.modules["norm"]
    calls = {name: [c.op for c in p.calls] for name, p in made.programs.items()}
    assert calls == {n: [c.op for c in p.calls] for n, p in b.manifest.programs.items()}
    every = graft(a.manifest, b.manifest, changes, frozenset(changes.names))
    assert {op.change for op in diff(every, b.manifest).ops} <= {"impl"}
    assert not diff(verify(every).manifest, b.manifest).ops


@pytest.mark.slow
def test_a_stretch_that_fails_is_named(package, cache, tmp_path, monkeypatch):
    other = renamed(package, tmp_path / "b")
    found = swapped(cache, monkeypatch, package, other, "--bisect")
    assert any("`norm(rows=tokens,width=32) -> normed` alone: FAIL" in x for x in told(found))


# --- rules of the lane ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unfused(package, cache, tmp_path_factory):
    """The package with every rule of the lane held back."""
    lock: Lock = parse_lock((package / "lock.json").read_bytes(), "lock")
    folder = tmp_path_factory.mktemp("unfused") / "package"
    options = {"numerics": "precise", "sequences": 2, "held": RULES}
    return compiled(lock.checkpoint, folder, cache, **options).path


def test_the_rule_that_fails_is_named(package, unfused, cache):
    sides = [(path, read_parts(path)) for path in (unfused, package)]
    proof = failed(sides[0][1], sides[1][1])

    def judge(parts):
        """As if whatever a gate and an up projection are joined into were wrong."""
        wrong = any(op.startswith("glu") for op in parts.manifest.ops)
        return Verdict("FAIL" if wrong else "PASS", "drift", "")

    with hybrids(*sides, proof, cache) as (held, fixed):
        assert fixed == ()
        assert len(held.names) > 3
        found = bisect(held, fixed, proof, judge, lambda _: None)
    assert [culprit.changes for culprit in found.culprits] == [("glu",)]
    assert found.rest is not None
    assert found.rest.word == "PASS"


def test_plans_with_an_edited_kernel_are_taken_apart_by_stretches(
    package, unfused, cache, tmp_path
):
    edited = rebuilt(package, tmp_path / "b", "norm", WORSE)
    sides = [(path, read_parts(path)) for path in (unfused, edited)]
    with hybrids(*sides, failed(sides[0][1], sides[1][1]), cache) as (held, fixed):
        assert fixed == ()
        assert any(" -> " in name for name in held.names)
        verify(held.parts(frozenset(held.names)).manifest)


def test_what_cannot_be_made_alone_is_told(package, cache, tmp_path):
    edited = rebuilt(package, tmp_path / "b", "norm", WORSE)
    sides = [(path, read_parts(path)) for path in (package, edited)]
    proof = failed(sides[0][1], sides[1][1])
    passing = Verdict("PASS", "logit evidence", "")
    with hybrids(*sides, proof, cache) as (held, _):
        found = bisect(held, ("a stretch",), proof, lambda _: passing, lambda _: None)
    assert found.culprits == ()
    assert list(lines(found))[1:] == [
        "bisect: cannot be made alone: a stretch",
        "bisect: the changes that can be made alone do not fail together",
    ]
