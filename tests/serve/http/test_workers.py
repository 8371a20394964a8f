"""What would hold up the loop goes to threads, so much of it and for so long."""

import asyncio
import threading
import time

import pytest

from bedstone.errors import CallerError, CapacityError
from bedstone.serve.http.bridge import Box, Bridge
from bedstone.serve.requests import Finished, Token
from bedstone.serve.text.constraint import Grammars
from bedstone.serve.workers import MOST_WAITING, THREADS, Workers


@pytest.fixture
def workers():
    made = Workers()
    yield made
    made.close()


def test_work_comes_back_with_what_it_came_to(workers):
    def fail():
        raise CallerError("no")

    async def main():
        thread = await workers.run(threading.get_ident)
        assert thread != threading.get_ident()
        with pytest.raises(CallerError, match="no"):
            await workers.run(fail)

    asyncio.run(main())


def test_too_much_work_is_refused_and_the_loop_goes_on(workers):
    gate = threading.Event()

    async def main():
        waiting = [asyncio.ensure_future(workers.run(gate.wait)) for _ in range(MOST_WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(CapacityError, match="too many"):
            await workers.run(gate.wait)
        gate.set()
        assert await asyncio.gather(*waiting) == [True] * MOST_WAITING
        assert await workers.run(lambda: 7) == 7

    asyncio.run(main())
    assert THREADS < MOST_WAITING


def test_work_that_takes_too_long_is_not_waited_for(workers):
    gate = threading.Event()

    async def main():
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            await workers.run(gate.wait, 0.05)
        gate.set()
        return time.monotonic() - began

    assert asyncio.run(main()) < 2


def test_a_grammar_that_takes_too_long_is_refused(fronted, monkeypatch):
    front = fronted(compile_seconds=0.05)
    monkeypatch.setattr(Grammars, "compile", lambda *_: time.sleep(0.3))
    response = front.post("/v1/completions", {"prompt": [0], "guided_regex": "a"})
    assert response.status_code == 400
    assert "more than 0.05 s" in response.json()["error"]["message"]


def test_events_of_a_step_cross_at_once_and_end_with_their_request():
    bridge = Bridge()
    # nobody listens yet, and that is no error
    bridge.deliver([Token("a", 1)])

    async def main():
        loop = asyncio.get_running_loop()
        calls = []
        original = loop.call_soon_threadsafe
        loop.call_soon_threadsafe = lambda *args: calls.append(args) or original(*args)
        bridge.bind(loop)
        box = Box(10)
        bridge.expect("a", box)
        bridge.expect("b", box)
        bridge.forget(["b"])
        events = [Token("a", 1), Token("b", 2), Finished("a", "stop", 1, 0, 1), Token("a", 3)]
        thread = threading.Thread(target=bridge.deliver, args=(events,))
        thread.start()
        taken = await box.take()
        thread.join()
        box.nudge()
        assert await box.take() == []
        return taken == [events[0], events[2]], len(calls)

    assert asyncio.run(main()) == (True, 1)
    # the loop has closed
    bridge.deliver([Token("a", 1)])
