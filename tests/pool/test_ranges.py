"""The free ranges of the host block, against a bitmap."""

from hypothesis import given
from hypothesis import strategies as st

from bedstone.pool.ranges import Ranges

SIZE = 40


def first_fit(free, size, count):
    """Where pieces go, taking each free range in turn from its start."""
    found, at = [], 0
    while at < SIZE and len(found) < count:
        if at + size <= SIZE and all(free[at : at + size]):
            found.append(at)
            at += size
        else:
            at += 1
    return tuple(found) if len(found) == count else None


@given(
    st.lists(st.tuples(st.sampled_from("lhg"), st.integers(1, 7), st.integers(0, 6)), max_size=60)
)
def test_first_fit_from_either_end_and_freed_ranges_coalesce(calls):
    ranges, free, taken = Ranges(SIZE), [True] * SIZE, []
    for call, size, count in calls:
        got = ()
        if call == "l":
            got = ranges.take_low(size, count)
            assert got == first_fit(free, size, count)
        elif call == "h":
            high = ranges.take_high(size)
            low = first_fit(free[::-1], size, 1)
            assert high == (None if low is None else SIZE - low[0] - size)
            got = None if high is None else (high,)
        elif taken:
            at, given_back = taken.pop(count % len(taken))
            ranges.give(at, given_back)
            free[at : at + given_back] = [True] * given_back
        for at in got or ():
            free[at : at + size] = [False] * size
            taken.append((at, size))
        assert ranges.free == sum(free)
    for at, size in taken:
        ranges.give(at, size)
    assert ranges.take_low(SIZE, 1) == (0,)
