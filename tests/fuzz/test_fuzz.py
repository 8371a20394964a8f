"""Our verdict and the reference's on manifests nobody wrote."""

import json

import pytest

from bedstone.spec.codec import parse
from bedstone.verify import check
from conformance_cases import Case, cases
from fuzz.campaign import Trial, trials
from fuzz.comparison import disagreement
from fuzz.generator import draw_manifest
from reference_reader import AVAILABLE, Answer

needs_reference = pytest.mark.skipif(
    not AVAILABLE, reason="the reference reader has no wheel for this platform"
)


@pytest.mark.parametrize("seed", range(100))
def test_a_drawn_manifest_keeps_every_rule(seed: int) -> None:
    assert check(parse(json.dumps(draw_manifest(seed)))) == []


@needs_reference
@pytest.mark.slow
def test_changed_manifests_get_the_references_verdict() -> None:
    found: list[Trial] = [trial for trial in trials(range(300)) if trial.is_found]
    assert found == []


@pytest.mark.parametrize("case", cases("found.jsonl"), ids=lambda case: case.name)
def test_a_disagreement_once_found_stays_settled(case: Case) -> None:
    assert disagreement(case.text, Answer(case.accepted, case.messages)) is None
