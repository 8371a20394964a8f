"""Every stored manifest: our verdict, faults, objects and order against the reference's."""

import pytest

from bedstone.spec.codec import parse
from bedstone.verify import check
from conformance_cases import ACCEPTED, Case, accepted_text, cases
from fuzz.comparison import disagreement
from reference_reader import Answer
from verify.stored_differences import DIFFERENCES


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_stored_case_has_the_references_faults(case: Case) -> None:
    found = disagreement(case.text, Answer(case.accepted, case.messages))
    differs = (found.allowed or found.kind) if found else None
    assert differs == DIFFERENCES.get(case.name), found


@pytest.mark.parametrize("name", [name for name in ACCEPTED if name != "20_positional"])
def test_an_accepted_manifest_has_no_faults(name: str) -> None:
    assert check(parse(accepted_text(name))) == []
