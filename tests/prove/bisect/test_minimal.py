"""Delta debugging finds what fails and nothing more."""

from hypothesis import given
from hypothesis import strategies as st

from bedstone.prove.bisect.minimal import culprits, minimal

NAMES = [f"c{n}" for n in range(12)]


def fails_where(*wanted):
    """Fails where every change of one of these sets is there."""
    return lambda chosen: any(set(each) <= chosen for each in wanted)


@given(st.permutations(NAMES), st.sets(st.sampled_from(NAMES), min_size=1))
def test_what_fails_together_is_found_whole_and_alone(order, wanted):
    assert set(minimal(order, fails_where(wanted))) == wanted


@given(st.lists(st.sets(st.sampled_from(NAMES), min_size=1, max_size=3), min_size=1, max_size=4))
def test_what_is_found_of_several_cannot_do_without_any(wanted):
    fails = fails_where(*wanted)
    found = minimal(NAMES, fails)
    assert fails(frozenset(found))
    assert not any(fails(frozenset(found) - {name}) for name in found)


def test_the_first_is_tried_alone_before_anything_else():
    tried = []

    def fails(chosen):
        tried.append(chosen)
        return "c0" in chosen

    assert minimal(NAMES, fails) == ("c0",)
    assert tried == [frozenset({"c0"})]


def test_every_set_that_fails_is_found_until_the_rest_does_not():
    fails = fails_where({"c1"}, {"c4", "c9"})
    assert culprits(NAMES, fails) == [("c1",), ("c4", "c9")]
    assert culprits(NAMES, lambda _: False) == []


def test_tests_are_few():
    asked = set()

    def fails(chosen):
        asked.add(chosen)
        return "c77" in chosen

    assert minimal([f"c{n}" for n in range(128)], fails) == ("c77",)
    assert len(asked) < 30
