"""Every stored manifest: our verdict, faults, objects and order against the reference's."""

import pytest

from bedstone.spec.codec import parse
from bedstone.verify import check
from conformance_cases import ACCEPTED, Case, accepted_text, cases
from fuzz.comparison import disagreement
from reference_reader import Answer

ALLOWED = {
    "P7/fill-temperature-is-newer-than-this-oracle": "the schema is newer than the reference",
    "P7/fill-top_k-is-newer-than-this-oracle": "the schema is newer than the reference",
    "P7/fill-top_p-is-newer-than-this-oracle": "the schema is newer than the reference",
    "P7/fill-min_p-is-newer-than-this-oracle": "the schema is newer than the reference",
    "P7/fill-seed-is-newer-than-this-oracle": "the schema is newer than the reference",
    "P4/chat-is-newer-than-this-oracle": "the schema is newer than the reference",
    "P9/expr-clamp-is-newer-than-this-oracle": "the schema is newer than the reference",
    "P4/unknown-key-in-expr-is-ignored": "more than an operator in an expression",
    "P4/expr-with-two-operators-takes-the-first": "more than an operator in an expression",
    "P9/arg-f32-overflow-becomes-infinity": "an f32 literal beyond float32",
    "P11/var-as-array": "a struct as an array, an enum as an object",
    "P11/kind-as-map": "a struct as an array, an enum as an object",
    "G5/block-product-wraps": "a product that wraps",
}
"""The cases on which we mean to differ, and why; `docs/manifest.md` gives the reasons."""


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_stored_case_has_the_references_faults(case: Case) -> None:
    found = disagreement(case.text, Answer(case.accepted, case.messages))
    differs = (found.allowed or found.kind) if found else None
    assert differs == ALLOWED.get(case.name), found


@pytest.mark.parametrize("name", [name for name in ACCEPTED if name != "20_positional"])
def test_an_accepted_manifest_has_no_faults(name: str) -> None:
    assert check(parse(accepted_text(name))) == []
