"""The engine's thread: what it takes and refuses, and that every request ends once."""

import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from bedstone.errors import CallerError, CapacityError, DeviceError
from bedstone.runtime.executor import Executor
from bedstone.runtime.reserve import Reserve
from bedstone.serve.engine import Options, ThreadedEngine
from bedstone.serve.requests import Request
from driven import Told
from served_toy import answers


class Inbox(Told):
    """What an engine delivers, and a wait for the ends."""

    def __init__(self) -> None:
        super().__init__()
        self._ended = threading.Condition()

    def __call__(self, events) -> None:
        with self._ended:
            self.take(events)
            self._ended.notify_all()

    def wait(self, *names: str) -> None:
        with self._ended:
            assert self._ended.wait_for(lambda: set(names) <= self.ends.keys(), 60), self.ends


@pytest.fixture
def engine(session):
    held = []

    def make(options=None, **shape):
        inbox = Inbox()
        found = ThreadedEngine(session(**shape), inbox, options or Options())
        held.append(found)
        return found, inbox

    yield make
    for each in held:
        each.close(0)


def test_requests_come_from_many_threads(engine):
    served, inbox = engine()
    prompts = {f"r{i}": [i + 1] * (1 + i % 7) for i in range(40)}

    def ask(names):
        for name in names:
            served.submit(Request(name, prompts[name], 5))

    names = sorted(prompts)
    threads = [threading.Thread(target=ask, args=(names[i::4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    inbox.wait(*names)
    for name in names:
        assert inbox.tokens[name] == answers(prompts[name], 5)
    stats = served.stats()
    assert (stats.running, stats.waiting, stats.pages_held) == (0, 0, 0)
    assert stats.finished["length"] == 40
    assert stats.made_tokens == 200


def test_what_cannot_be_is_refused(engine):
    served, inbox = engine()
    limits = served.limits
    for request, message in (
        (Request("a", [], 1), "the prompt is empty"),
        (Request("a", [1], 0), "`max_tokens` is 0"),
        (Request("a", [1, limits.vocab], 1), f"token {limits.vocab}, expected 0 to"),
        (Request("a", [1] * limits.context, 1), "the context holds 64"),
    ):
        with pytest.raises(CallerError, match=message):
            served.submit(request)
    served.close(0)
    assert not inbox.events


def test_after_a_close_nothing_is_taken(engine):
    served, inbox = engine()
    served.submit(Request("a", [1, 2], 30))
    served.close(20)
    assert inbox.tokens["a"] == answers([1, 2], 30)
    with pytest.raises(CapacityError, match="the engine is closing"):
        served.submit(Request("b", [1], 1))
    served.cancel("a")
    served.close(0)
    assert list(inbox.ends) == ["a"]


def test_at_its_end_it_gives_back_the_hosts_memory(engine, monkeypatch):
    reserve, close, held = Executor.reserve, Reserve.close, []

    def reserved(self, nbytes):
        held.append(reserve(self, nbytes))
        return held[-1]

    def closed(self):
        held.remove(self)
        close(self)

    monkeypatch.setattr(Executor, "reserve", reserved)
    monkeypatch.setattr(Reserve, "close", closed)
    served, _ = engine(Options(host_bytes=2**16))
    served.submit(Request("a", [1, 2], 30))
    assert len(held) == 1
    served.close(20)
    assert not held


def test_as_many_wait_as_may(engine):
    """Two run and two wait; of ten at once six are refused, and later all are taken again."""
    served, inbox = engine(Options(sequences=2, queue=2), page=8, width=64, pages=256)
    taken, refused = [], []
    for index in range(10):
        try:
            served.submit(Request(f"r{index}", [1, 2, 3 + index], 400))
            taken.append(f"r{index}")
        except CapacityError as error:
            refused.append(str(error))
    # one may have ended while the others came
    assert 4 <= len(taken) < 10
    assert "as many as may be: 2 at once and 2 that wait" in refused[0]
    inbox.wait(*taken)
    served.submit(Request("later", [1], 2))
    inbox.wait("later")
    assert inbox.tokens["later"] == answers([1], 2)


def test_two_of_one_name_are_not_open_at_once(engine):
    served, inbox = engine(page=8, width=64, pages=256)
    served.submit(Request("a", [1, 2], 400))
    with pytest.raises(CallerError, match="request `a` is open"):
        served.submit(Request("a", [1, 2], 4))
    served.cancel("a")
    inbox.wait("a")


def test_a_closing_engine_cancels_what_takes_longer(engine):
    served, inbox = engine(page=8, width=64, pages=256)
    for index in range(20):
        served.submit(Request(f"r{index}", [1, 2 + index], 500))
    served.close(0)
    assert len(inbox.ends) == 20
    assert {end.reason for end in inbox.ends.values()} <= {"cancelled", "length"}
    assert "cancelled" in {end.reason for end in inbox.ends.values()}


def test_a_device_that_fails_ends_every_request_with_its_error(engine, monkeypatch):
    served, inbox = engine(page=8, width=64, pages=256)
    start, calls = Executor.start, []

    def failing(self, program, times, collect, /, **given):
        calls.append(program)
        if len(calls) == 30:
            raise DeviceError("the device fell off the bus")
        return start(self, program, times, collect, **given)

    monkeypatch.setattr(Executor, "start", failing)
    names = [f"r{index}" for index in range(12)]
    for index, name in enumerate(names):
        served.submit(Request(name, [1, 2 + index], 300))
    inbox.wait(*names)
    for name in names:
        end = inbox.ends[name]
        assert (end.reason, end.message) == ("error", "the device fell off the bus")
    assert sum(map(len, inbox.tokens.values())) > 0
    with pytest.raises(DeviceError, match="the engine has stopped: the device fell off the bus"):
        served.submit(Request("late", [1], 1))
    served.cancel("r0")
    served.close(1)


def test_nobody_to_tell_is_the_end(session):
    def deliver(_events):
        raise OSError("the loop is closed")

    served = ThreadedEngine(session(), deliver)
    served.submit(Request("a", [1, 2], 3))
    served.close(20)
    with pytest.raises(DeviceError, match="the engine has stopped: OSError: the loop is closed"):
        served.submit(Request("b", [1, 2], 3))


def test_an_end_that_nobody_asked_for_is_told_once_and_last(session, monkeypatch):
    def failing(*_given, **_more):
        raise DeviceError("the device fell off the bus")

    told = []
    inbox = Inbox()
    served = ThreadedEngine(session(), inbox, failed=lambda: told.append(dict(inbox.ends)))
    assert served.fault is None
    monkeypatch.setattr(Executor, "start", failing)
    for name in "ab":
        with suppress(DeviceError):
            served.submit(Request(name, [1, 2], 3))
    inbox.wait("a")
    served._thread.join(20)
    served.close(0)
    assert served.fault == "the device fell off the bus"
    assert [sorted(ends) for ends in told] == [sorted(inbox.ends)]


def test_an_end_that_was_asked_for_is_no_failure(session):
    told = []
    served = ThreadedEngine(session(), Inbox(), failed=lambda: told.append("failed"))
    served.submit(Request("a", [1, 2], 50))
    served.close(0)
    assert (served.fault, told) == (None, [])


def test_a_fault_on_the_way_out_is_no_reason_to_end(session, monkeypatch):
    def failing():
        raise DeviceError("the device fell off the bus")

    told = []
    served = ThreadedEngine(session(), Inbox(), failed=lambda: told.append("failed"))
    monkeypatch.setattr(served._core, "close", failing)
    served.close(0)
    assert (served.fault, told) == ("the device fell off the bus", [])


def test_a_session_that_another_takes_is_said_to_be(engine):
    served, inbox = engine(page=8, width=64, pages=256)
    served.submit(Request("a", [1, 2], 500))
    served._core._session.begin()
    inbox.wait("a")
    assert inbox.ends["a"].reason == "error"
    assert "another generation began" in inbox.ends["a"].message


def test_cancels_race_with_ends(engine):
    served, inbox = engine()
    names = [f"r{index}" for index in range(60)]
    for index, name in enumerate(names):
        served.submit(Request(name, [1, 2 + index], 1 + index % 5))
        served.cancel(names[index // 2])
    inbox.wait(*names)
    for name in names:
        served.cancel(name)
    served.close(5)
    assert len(inbox.ends) == len(names)


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("admission", ["needed", "worst"])
def test_hundreds_of_requests_lose_repeat_and_mix_nothing(engine, folded, admission):
    """Arrivals, cancels, deadlines and limits at random, from several threads."""
    options = Options(chunk=6, budget=12, queue=400, admission=admission, host_bytes=2**20)
    served, inbox = engine(options, pages=40, folded=folded)
    expected, doomed = {}, set()

    def ask(seed):
        random = np.random.default_rng(seed)
        for index in range(60):
            name, count = f"{seed}.{index}", int(random.integers(1, 24))
            prompt = [int(t) for t in random.integers(0, 3, int(random.integers(1, 34)))]
            expected[name] = answers(prompt, count, folded=folded)
            deadline = None
            if random.random() < 0.1:
                deadline = time.monotonic() + float(random.random()) / 50
                doomed.add(name)
            served.submit(Request(name, prompt, count, deadline=deadline))
            if random.random() < 0.2:
                time.sleep(float(random.random()) / 500)
                victim = f"{seed}.{random.integers(0, index + 1)}"
                doomed.add(victim)
                served.cancel(victim)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    inbox.wait(*expected)
    for name, tokens in expected.items():
        made, end = inbox.tokens[name], inbox.ends[name]
        assert made == tokens[: len(made)]
        assert end.made == len(made)
        assert end.reason == "length" if made == tokens else name in doomed
    served.close(5)
    stats = served.stats()
    assert (stats.pages_held, stats.running, stats.waiting) == (0, 0, 0)
    assert stats.made_tokens == sum(map(len, inbox.tokens.values()))
    assert sum(stats.finished.values()) == len(expected)
