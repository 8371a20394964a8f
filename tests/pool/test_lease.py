"""Leases: what is given, in which order, and what is refused."""

from bedstone.pool import Geometry, Pool


def test_the_lowest_pages_and_slot_are_given_first():
    pool = Pool(Geometry(pages=8, unit=4, row=4, slots=3))
    first, second = pool.lease(10), pool.lease(4)
    assert (first.pages, first.slot) == ((0, 1, 2), 1)
    assert (second.pages, second.slot) == ((3,), 2)
    first.close()
    assert pool.lease(5).pages == (0, 1)
