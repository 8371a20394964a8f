"""Sequences that only fit because memory goes from pages to slots and back."""

import ctypes
import mmap
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedstone.errors import CallerError
from bedstone.runtime.load import load
from bedstone.runtime.lower import Region
from bedstone.serve.engine.options import Options
from driven import Driven
from served_toy import answers, served_parts

CHUNK = 4096
TOKENS = 8 * CHUNK // 8
"""Tokens of 8 bytes that the paged state has at first: eight chunks."""

SEQUENCES = 4
"""With the null line and a spare one six slots at first, of a chunk each."""

MOST = TOKENS + 4 * CHUNK // 8
"""Tokens of a sequence that is alone: four slots are given up for it."""

SHAPE = {"page": 4, "width": MOST // 4, "groups": 12, "rows": 64, "folded": True, "line": CHUNK}


@pytest.fixture(scope="module")
def parts(tmp_path_factory, cache):
    return served_parts(tmp_path_factory.mktemp("served"), cache, **SHAPE)


@contextmanager
def opened(parts, cache, *, remaps=True, tokens=TOKENS, sequences=SEQUENCES):
    options = {"tokens": tokens, "sequences": sequences, "remaps": remaps}
    with load(parts, cache=cache, threads=1, **options) as session:
        yield session


@pytest.fixture
def session(parts, cache):
    with opened(parts, cache) as session:
        yield session


_MINCORE = ctypes.CDLL(None).mincore
_MINCORE.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


def resident(session) -> int:
    """Bytes of the states that the system has given memory."""
    found = 0
    for name in ("kv", "sums"):
        memory = session.loaded.memory[Region("state", name)]
        pages = np.zeros(-(-memory.reserved // mmap.PAGESIZE), np.uint8)
        assert not _MINCORE(memory.address, memory.reserved, pages.ctypes.data)
        found += int((pages & 1).sum()) * mmap.PAGESIZE
    return found


BUDGET = 14 * CHUNK


def short(index: int) -> list[int]:
    return [1 + index, 2, 3 + index]


def long(index: int, count: int) -> list[int]:
    return [(7 * at + index) % 90 for at in range(count)]


def require_answers(engine, asked):
    engine.finish()
    for name, (prompt, count) in asked.items():
        assert engine.tokens[name] == answers(prompt, count, folded=True), name
        assert engine.ends[name].reason == "length"


def require_mix(engine, sizes):
    """Of each, so many times 12 tokens follow a prompt of such a length; some come at once."""
    asked = {}
    for index, (scale, most) in enumerate(sizes):
        length = most if index % 3 == 0 else 1 + most % 40
        asked[f"r{index}"] = (long(index, length), 1 + 12 * scale)
        engine.submit(f"r{index}", *asked[f"r{index}"])
        if index % 2:
            engine.turn()
    require_answers(engine, asked)
    engine.core.close()


@pytest.mark.parametrize("reuse", [False, True])
def test_many_short_sequences_then_few_long_ones_and_many_again(session, reuse):
    engine = Driven(session, Options(reuse=reuse))
    most = 0
    for turn in range(2):
        asked = {f"s{turn}.{i}": (short(i), 20) for i in range(12)}
        for name, (prompt, count) in asked.items():
            engine.submit(name, prompt, count)
        while engine.core.busy:
            engine.turn()
            most = max(most, len(engine.core._rows))
            assert resident(session) <= BUDGET
        require_answers(engine, asked)
        asked = {f"l{turn}.{i}": (long(i, MOST - 60 - i), 50) for i in range(2)}
        for name, (prompt, count) in asked.items():
            engine.submit(name, prompt, count)
        require_answers(engine, asked)
        assert resident(session) <= BUDGET
    # all twelve had slots at once, of which there are six at first
    assert most == 12
    assert engine.core.stats().remaps >= 4
    engine.core.close()


def test_a_pool_of_a_fixed_split_holds_neither(parts, cache):
    with opened(parts, cache, remaps=False) as session:
        engine = Driven(session, Options(reuse=False))
        with pytest.raises(CallerError, match="context"):
            engine.submit("l", long(0, MOST - 60), 50)
        for i in range(12):
            engine.submit(f"s{i}", short(i), 20)
        most = 0
        while engine.core.busy:
            engine.turn()
            most = max(most, len(engine.core._rows))
        assert most == SEQUENCES + 1
        assert engine.core.stats().remaps == 0


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, MOST - 100)), min_size=1, max_size=8))
def test_any_mix_is_answered_as_a_large_pool_does(parts, cache, sizes):
    with opened(parts, cache) as session:
        require_mix(Driven(session), sizes)
        assert resident(session) <= BUDGET


def test_a_sequence_of_its_own_finds_the_states_as_they_were_at_first(session):
    engine = Driven(session, Options(reuse=False))
    engine.submit("long", long(0, MOST - 60), 5)
    engine.finish()
    assert engine.core.stats().remaps == 1
    with pytest.raises(CallerError, match="`sums` is not in one piece: its memory was remapped"):
        session.region("sums")
    engine.core.close()
    prompt = long(3, TOKENS - 60)
    assert list(session.generate(prompt, 9)) == answers(prompt, 9, folded=True)
    assert session.region("sums").size == (SEQUENCES + 2) * CHUNK


class Late:
    """Remaps that a device makes only a while after they were asked for."""

    def __init__(self, device, polls):
        self.device, self.polls = device, polls
        self.asked = self.waited = 0
        self.moves = None

    def __call__(self, moves, chunk):
        assert self.moves is None
        self.moves, self.chunk, self.left = moves, chunk, self.polls
        self.asked += 1
        return self

    @property
    def ready(self):
        self.left -= 1
        return self.moves is None or self.left < 0

    def wait(self):
        if self.moves is None:
            return
        self.waited += self.left >= 0
        type(self.device).remap(self.device, self.moves, self.chunk).wait()
        for _, target in self.moves:
            self.device.clear(target, self.chunk)
        self.moves = None


def made_late(session, polls):
    device = session.loaded.device
    device.remap = Late(device, polls)
    return device.remap


@pytest.fixture
def late(session):
    return made_late(session, 3)


def test_who_waits_for_memory_asks_again_and_nothing_is_evicted(session, late):
    """Steps go on meanwhile; what is kept for others stays as long as there is memory."""
    late.polls = 9
    engine = Driven(session)
    for i in range(4):
        engine.submit(f"first{i}", short(i), 1)
    engine.finish()
    engine.submit("runs", long(0, 30), 200)
    while not len(engine.core._rows):
        engine.turn()
    waited, steps = late.waited, engine.core.stats().steps
    engine.submit("waits", long(1, 9), 5)
    while late.asked < 2:
        engine.turn()
        assert engine.core.stats().evicted == 0
    assert late.waited == waited
    while "waits" not in engine.tokens:
        engine.turn()
    assert engine.core.stats().steps > steps + 3
    engine.finish()
    assert engine.core.stats().evicted == 0
    assert engine.tokens["waits"] == answers(long(1, 9), 5, folded=True)
    assert engine.tokens["runs"] == answers(long(0, 30), 200, folded=True)
    engine.core.close()


@settings(max_examples=25)
@given(
    st.integers(0, 6),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, MOST - 100)), min_size=1, max_size=8),
)
def test_any_mix_is_answered_where_memory_comes_late(parts, cache, polls, sizes):
    with opened(parts, cache) as session:
        made_late(session, polls)
        require_mix(Driven(session), sizes)


def test_an_engine_that_is_closed_leaves_nothing_on_its_way(session, late):
    engine = Driven(session, Options(reuse=False))
    for i in range(7):
        engine.submit(f"{i}", short(i), 30)
    while late.moves is None:
        engine.turn()
    engine.core.cancel_all()
    engine.core.close()
    assert late.moves is None


def test_memory_that_will_be_wanted_is_on_its_way_before(session, late):
    """A sequence that grows past what is there is told nothing, and waits for nothing."""
    late.polls = 1
    engine = Driven(session, Options(reuse=False))
    engine.submit("grows", long(0, TOKENS - 40), 90)
    engine.finish()
    assert (late.asked, late.waited) == (1, 0)
    assert engine.tokens["grows"] == answers(long(0, TOKENS - 40), 90, folded=True)
    engine.core.close()
