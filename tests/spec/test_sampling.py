"""The record of a sampler's buffers, and seeds as an input holds them."""

import json

import pytest

from bedstone.errors import ManifestError
from bedstone.spec.sampling import Knobs, emit_knobs, parse_knobs, signed

NAMES = Knobs.__struct_fields__
KNOBS = Knobs(**{name: f"buffer of {name}" for name in NAMES})


def test_a_record_is_read_back_the_same() -> None:
    assert parse_knobs(emit_knobs(KNOBS), "here") == KNOBS
    assert KNOBS.buffers == {f"buffer of {name}" for name in NAMES}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "truncated"),
        (b"[]", "Expected `object`"),
        (json.dumps(dict.fromkeys(NAMES[1:], "x")).encode(), "missing required field `edits`"),
        (json.dumps(dict.fromkeys(NAMES, 1)).encode(), "Expected `str`, got `int`"),
        (json.dumps({**dict.fromkeys(NAMES, "x"), "more": "x"}).encode(), "unknown field `more`"),
        (b"\xff{}", "invalid"),
    ],
)
def test_what_is_no_record_is_refused_where_it_lies(text: bytes, why: str) -> None:
    with pytest.raises(ManifestError, match=why) as caught:
        parse_knobs(text, "pkg/sampling.json")
    assert "`pkg/sampling.json` is no record of a sampler" in str(caught.value)


@pytest.mark.parametrize(
    ("seed", "held"),
    [(0, 0), (5, 5), (-1, -1), (2**63 - 1, 2**63 - 1), (2**63, -(2**63)), (2**64 + 3, 3)],
)
def test_a_seed_is_its_low_64_bits(seed: int, held: int) -> None:
    assert signed(seed) == held
    assert signed(seed) % 2**64 == seed % 2**64
