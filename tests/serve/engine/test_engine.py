"""The engine's thread: what it takes and refuses, and that every request ends once."""

import threading

import pytest

from bedstone.errors import CallerError, CapacityError
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
            assert self._ended.wait_for(lambda: set(names) <= self.ends.keys(), 20), self.ends


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
