"""Our verdict and the reference's on manifests nobody wrote."""

import json

import pytest

from bedstone.spec.codec import parse
from bedstone.verify import check
from conformance_cases import ROOT
from fuzz.campaign import Trial, trials
from fuzz.comparison import disagreement
from fuzz.generator import draw_manifest
from reference_reader import AVAILABLE, Answer

needs_reference = pytest.mark.skipif(
    not AVAILABLE, reason="the reference reader has no wheel for this platform"
)

FOUND = ROOT / "found.jsonl"


def found_cases() -> list[dict[str, object]]:
    return [json.loads(line) for line in FOUND.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("seed", range(100))
def test_a_drawn_manifest_keeps_every_rule(seed: int) -> None:
    assert check(parse(json.dumps(draw_manifest(seed)))) == []


@needs_reference
def test_changed_manifests_get_the_references_verdict() -> None:
    found: list[Trial] = [trial for trial in trials(range(300)) if trial.is_found]
    assert found == []


@pytest.mark.parametrize("case", found_cases(), ids=lambda case: case["name"])
def test_a_manifest_found_by_fuzzing_stays_settled(case: dict[str, object]) -> None:
    answer = Answer(bool(case["accepted"]), tuple(case["messages"]))
    differs = disagreement(str(case["text"]), answer)
    assert (differs and (differs.allowed or differs.kind)) == case["allowed"]
