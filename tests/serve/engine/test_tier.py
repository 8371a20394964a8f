"""Prefixes that go to the host and come back while steps run, on a device that is late."""

from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedstone.runtime.load import load
from bedstone.serve.engine.options import Options
from driven import Driven
from served_toy import answers, served_parts

ROOM = 2**22
PAGES = 12
SHAPE = {"page": 4, "width": 12, "groups": 4, "rows": 8}


class Late:
    """Copies that a device makes, in order, after some that asked whether it has."""

    def __init__(self, device, polls):
        self.device, self.polls = device, polls
        self.queue, self.waited, self.most = [], 0, 0

    def __call__(self, copies):
        handle = Handle(self, list(copies))
        self.queue.append(handle)
        self.most = max(self.most, len(self.queue))
        return handle

    def make(self, handle):
        while handle in self.queue:
            first = self.queue.pop(0)
            type(self.device).transfer(self.device, first.copies).wait()


class Handle:
    def __init__(self, late, copies):
        self.late, self.copies, self.left = late, copies, late.polls
        self.to_host = copies[0].target_pitch > copies[0].source_pitch

    @property
    def ready(self):
        self.left -= 1
        if self.left < 0:
            self.late.make(self)
        return self not in self.late.queue

    def wait(self):
        self.late.waited += self in self.late.queue
        self.late.make(self)


@pytest.fixture(scope="module", params=[False, True])
def folded(request):
    return request.param


@pytest.fixture(scope="module")
def parts(tmp_path_factory, cache, folded):
    return served_parts(tmp_path_factory.mktemp("served"), cache, folded=folded, **SHAPE)


@contextmanager
def engine(parts, cache, polls, pages=PAGES):
    with load(parts, cache=cache, threads=1, tokens=4 * pages, sequences=4) as session:
        device = session.loaded.device
        device.transfer = Late(device, polls)
        driven = Driven(session, Options(host_bytes=ROOM))
        yield driven, device.transfer
        driven.core.close()
        assert not device.transfer.queue


def prompt(index: int, length: int) -> list[int]:
    return [(5 * index + 3 * at) % 90 for at in range(length)]


REQUESTS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(1, 28), st.integers(1, 12), st.integers(0, 3)),
    min_size=1,
    max_size=14,
)


@settings(max_examples=40)
@given(polls=st.integers(0, 7), requests=REQUESTS)
def test_any_mix_is_answered_whatever_is_on_its_way(parts, cache, folded, polls, requests):
    """Each (whose prompt, tokens of it, tokens that follow, turns before the next comes)."""
    with engine(parts, cache, polls) as (driven, _):
        for at, (index, length, count, turns) in enumerate(requests):
            driven.submit(f"{at}", prompt(index, length), count)
            for _ in range(turns):
                driven.turn()
        driven.finish()
        for at, (index, length, count, _) in enumerate(requests):
            expected = answers(prompt(index, length), count, folded=folded)
            assert driven.tokens[f"{at}"] == expected


def parked(driven) -> None:
    """A prompt of seven pages is answered, and makes way to others."""
    driven.submit("first", prompt(0, 26), 2)
    driven.finish()
    for index in (1, 2):
        driven.submit(f"other{index}", prompt(index, 26), 2)
        driven.finish()
    assert driven.core.stats().parked > 0


def test_steps_go_on_while_a_prefix_comes_back(parts, cache, folded):
    with engine(parts, cache, 0, pages=20) as (driven, late):
        parked(driven)
        driven.submit("runs", prompt(3, 4), 14)
        while not len(driven.core._rows):
            driven.turn()
        late.polls, late.waited = 6, 0
        driven.submit("again", prompt(0, 26), 3)
        steps = driven.core.stats().steps
        while "again" not in driven.tokens:
            driven.turn()
        assert driven.core.stats().steps >= steps + 5
        # with states of its own more is kept, and a row waits for pages that make way to it
        assert late.waited <= (2 if folded else 0)
        driven.finish()
        assert driven.ends["again"].cached >= 24
        assert driven.tokens["again"] == answers(prompt(0, 26), 3, folded=folded)
        assert driven.tokens["runs"] == answers(prompt(3, 4), 14, folded=folded)


def test_two_that_want_a_prefix_have_it_come_back_once(parts, cache, folded):
    with engine(parts, cache, 0, pages=20) as (driven, late):
        parked(driven)
        driven.submit("runs", prompt(3, 4), 14)
        while not len(driven.core._rows):
            driven.turn()
        late.polls = 4
        driven.submit("one", prompt(0, 26), 2)
        driven.submit("two", prompt(0, 26), 2)
        while "one" not in driven.tokens:
            driven.turn()
            assert sum(not handle.to_host for handle in late.queue) <= 1
        driven.finish()
        for name in ("one", "two"):
            assert driven.ends[name].cached >= 24
            assert driven.tokens[name] == answers(prompt(0, 26), 2, folded=folded)


def test_whoever_goes_while_its_prefix_comes_back_leaves_it_to_others(parts, cache, folded):
    with engine(parts, cache, 0) as (driven, late):
        parked(driven)
        driven.submit("runs", prompt(3, 4), 30)
        while not len(driven.core._rows):
            driven.turn()
        late.polls = 5
        driven.submit("gone", prompt(0, 26), 2)
        while not late.queue:
            driven.turn()
        driven.core.cancel("gone")
        driven.finish()
        late.polls = 0
        driven.submit("again", prompt(0, 26), 2)
        driven.finish()
        assert driven.ends["again"].cached >= 24
        assert driven.tokens["again"] == answers(prompt(0, 26), 2, folded=folded)
