"""How tokens map to pages."""

import pytest

from bedstone.errors import CallerError
from bedstone.pool import Geometry, Pool


@pytest.mark.parametrize(
    ("length", "pages", "last"), [(15, 1, 15), (16, 1, 16), (17, 2, 1), (32, 2, 16)]
)
def test_d01_a_page_is_counted_only_once_a_token_is_in_it(length, pages, last):
    geometry = Geometry(pages=8, unit=16, row=8)
    assert (geometry.pages_for(length), geometry.last_page(length)) == (pages, last)
    with Pool(geometry).lease(length) as lease:
        assert len(lease.pages) == pages
        assert lease.extend(pages * 16) is None
        assert len(lease.pages) == pages


@pytest.mark.parametrize("unit", [1, 3, 16, 17])
def test_d02_a_last_page_holds_one_token_at_least_and_a_page_at_most(unit):
    geometry = Geometry(pages=100, unit=unit, row=100)
    for length in range(1, 100):
        last = geometry.last_page(length)
        assert 1 <= last <= unit
        assert (geometry.pages_for(length) - 1) * unit + last == length
    for none in (0, -1):
        with pytest.raises(CallerError, match=f"{none} tokens have no last page"):
            geometry.last_page(none)


@pytest.mark.parametrize(
    "wrong",
    [
        {"pages": -1},
        {"pages": 4, "row": 0},
        {"pages": 4, "row": 4, "unit": 0},
        {"slots": 1},
        {"slots": -2},
    ],
)
def test_a_geometry_that_cannot_be_is_refused(wrong):
    with pytest.raises(CallerError, match="expected"):
        Geometry(**wrong)


@pytest.mark.parametrize(
    ("geometry", "good"),
    [
        (Geometry(pages=8, unit=4, row=8), {4, 8, 10}),
        (Geometry(pages=8, unit=4, row=8, slots=3), {10}),
        (Geometry(slots=3), {10}),
        (Geometry(), set(range(1, 11))),
    ],
    ids=["pages", "both", "slots", "neither"],
)
def test_what_lengths_a_state_can_be_gone_on_with_from(geometry, good):
    assert {length for length in range(-2, 13) if geometry.reusable(length, 10)} == good
