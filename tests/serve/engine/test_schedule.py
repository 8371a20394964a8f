"""Who is let in and which prompts go on, over mixes of requests drawn at random."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedstone.serve.engine.schedule import (
    LOOKED_AT,
    PATIENCE,
    Prompt,
    Room,
    Waiter,
    plan_calls,
    plan_chunks,
    plan_entry,
)

WAITERS = st.lists(
    st.builds(
        lambda now, more, **rest: Waiter(now, now + more, **rest),
        st.integers(1, 9),
        st.integers(0, 9),
        passed=st.integers(0, PATIENCE),
        first=st.booleans(),
        held=st.booleans(),
    ),
    max_size=12,
)
ROOMS = st.builds(
    Room, st.integers(0, 6), st.none() | st.integers(0, 6), st.integers(0, 30), st.integers(0, 6)
)


@given(WAITERS, ROOMS)
def test_what_is_let_in_has_room(waiting, room):
    for admission in ("worst", "needed"):
        entry = plan_entry(waiting, room, admission)
        assert len(entry.admitted) <= room.places
        assert room.slots is None or len(entry.admitted) <= room.slots
        begun = [waiting[index] for index in entry.admitted]
        assert sum(w.worst if admission == "worst" else w.now for w in begun) <= room.pages
        assert not any(waiter.held for waiter in begun)


@given(WAITERS, ROOMS)
def test_nobody_passes_one_that_was_passed_often_or_gave_way(waiting, room):
    entry = plan_entry(waiting, room, "needed")
    for index, times in entry.passed:
        assert not waiting[index].first
        assert waiting[index].passed + times <= PATIENCE
        assert index not in entry.admitted
        assert times == sum(other > index for other in entry.admitted)
    for index, waiter in enumerate(waiting):
        blocks = (waiter.first or waiter.passed == PATIENCE) and not waiter.held
        if blocks and index not in entry.admitted:
            assert all(other < index for other in entry.admitted)


@given(st.integers(1, 20), st.integers(1, 30))
def test_who_fits_the_empty_pool_begins_where_nobody_runs(need, pages):
    entry = plan_entry([Waiter(need, need + 5)], Room(1, None, pages, 0), "needed")
    assert entry.admitted == ((0,) if need <= pages else ())


def test_a_page_is_left_for_each_that_grows():
    waiting, room = [Waiter(2, 9)] * 5, Room(5, None, 9, growing=1)
    # 2 and one for who runs, 2 and two for who run then, 2 and three: of the rest the fourth's need
    assert plan_entry(waiting, room, "needed").admitted == (0, 1, 2)
    assert plan_entry([Waiter(1, 2)] * 5, room, "worst").admitted == (0, 1, 2, 3)


def test_a_large_request_is_passed_only_so_often():
    large, passed = Waiter(10, 10), 0
    for _ in range(PATIENCE + 5):
        entry = plan_entry([large, Waiter(1, 1)], Room(2, None, 5, 0), "worst")
        passed += 1 in entry.admitted
        large = Waiter(10, 10, passed=large.passed + dict(entry.passed).get(0, 0))
    assert passed == PATIENCE


def test_no_more_of_a_queue_is_looked_at_than_decides():
    looked = []

    def queue(waiters):
        for waiter in waiters:
            looked.append(waiter)
            yield waiter

    small = [Waiter(1, 1)] * 300
    assert plan_entry(queue(small), Room(2, None, 9, 0), "worst").admitted == (0, 1)
    assert len(looked) == 2
    plan_entry(queue([Waiter(10, 10)] * 300), Room(2, None, 9, 0), "worst")
    assert len(looked) == 2 + 1 + LOOKED_AT
    assert plan_entry(queue(small), Room(0, None, 9, 0), "worst") == plan_entry(
        [], Room(0, None, 9, 0), "worst"
    )
    assert len(looked) == 3 + LOOKED_AT


PROMPTS = st.lists(
    st.builds(Prompt, st.integers(0, 40), st.integers(1, 40)), min_size=1, max_size=6
)


@given(PROMPTS, st.integers(0, 9), st.integers(1, 16), st.integers(1, 64))
def test_pieces_end_where_all_others_do_and_keep_the_budget(prompts, turn, chunk, budget):
    plan = plan_chunks(prompts, turn, chunk, budget)
    assert plan
    assert len({index for index, _ in plan}) == len(plan)
    for index, count in plan:
        prompt = prompts[index]
        assert 1 <= count <= min(chunk, prompt.left)
        assert count == prompt.left or (prompt.fed + count) % chunk == 0
    assert sum(count for _, count in plan[1:]) <= max(0, budget - plan[0][1])


@settings(max_examples=50)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(1, 16))
def test_every_prompt_ends_and_the_oldest_goes_on_every_second_turn(lengths, chunk):
    prompts = [Prompt(0, length) for length in lengths]
    oldest, turn = 0, 0
    while prompts:
        plan = dict(plan_chunks(prompts, turn, chunk, chunk))
        oldest = 0 if 0 in plan else oldest + 1
        assert oldest <= 1
        prompts = [
            Prompt(prompt.fed + count, prompt.left - count)
            for index, prompt in enumerate(prompts)
            if (count := plan.get(index, 0)) < prompt.left
        ]
        turn += 1
    assert turn <= sum(-(-length // chunk) for length in lengths)


def test_a_short_prompt_does_not_wait_for_a_long_one():
    long, short = Prompt(0, 1000), Prompt(0, 10)
    assert 1 in dict(plan_chunks([long, short], 1, 64, 64))
    assert dict(plan_chunks([long, short], 0, 64, 64)) == {0: 64}


@pytest.mark.parametrize(
    ("counts", "alone", "rows", "sequences", "calls"),
    [
        ([8, 8, 8], (), 16, 4, [(0, 1), (2,)]),
        ([8, 8, 8], (), 64, 2, [(0, 1), (2,)]),
        ([8, 9, 7], (), 16, 4, [(0,), (1, 2)]),
        ([8, 8, 8], {1}, 64, 4, [(0,), (1,), (2,)]),
        ([8, 8, 8], {0}, 64, 4, [(0,), (1, 2)]),
        ([20, 1], (), 16, 4, [(0,), (1,)]),
        ([], (), 16, 4, []),
    ],
)
def test_neighbours_share_a_call_as_far_as_it_holds_them(counts, alone, rows, sequences, calls):
    assert plan_calls(counts, alone, rows, sequences) == tuple(calls)
