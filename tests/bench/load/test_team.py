"""Clients in processes of their own."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from bedstone.bench.load import team
from bedstone.bench.load.asked import Mix, Span, draw_asks
from bedstone.bench.load.server import Server
from bedstone.bench.load.team import Team, drive, fitting_processes
from bedstone.errors import BedstoneError
from fake_server import Script, serving


def mix(requests=12, **more):
    return Mix(requests, Span(2, 4), Span(6, 6), **more)


def children():
    """The processes that this one has started and not waited for, by what they run."""
    found = Path("/proc/self/task").glob("*/children")
    pids = [int(pid) for listed in found for pid in listed.read_text().split()]
    return [pid for pid in pids if team.MODULE in Path(f"/proc/{pid}/cmdline").read_text()]


def test_the_requests_are_the_same_whatever_the_processes():
    asked, said = [], []
    for processes in (1, 3):
        script = Script(pieces=2)
        with serving(script) as url:
            driven = asyncio.run(
                drive(Server(url, "m"), draw_asks(mix()), Team(3, processes), said.append)
            )
        asked.append(sorted(ask["prompt"] for ask in script.asked))
        assert [answer.ask for answer in driven.answers] == list(range(12))
        assert {(len(a.pieces), a.tokens, a.fault) for a in driven.answers} == {(2, 4, None)}
        assert len(driven.busy) == processes
    assert asked[0] == asked[1]
    assert said[-1] == 12
    assert children() == []


def test_the_clients_are_as_many_as_asked_for_whatever_the_processes():
    script = Script(pieces=2, delay=0.05)
    with serving(script) as url:
        driven = asyncio.run(drive(Server(url, "m"), draw_asks(mix()), Team(4, 2), lambda _: None))
    assert script.most_live == 4
    sent = sorted(answer.sent for answer in driven.answers)
    # a client free asks at once, whichever its process
    assert sent[4] - sent[0] >= 0.1


def test_requests_arrive_at_their_own_times_in_any_process():
    asks = draw_asks(mix(20, rate=50.0))
    with serving(Script(pieces=1, delay=0.1)) as url:
        driven = asyncio.run(drive(Server(url, "m"), asks, Team(2, 2), lambda _: None))
    began = {answer.sent - ask.at for answer, ask in zip(driven.answers, asks, strict=True)}
    assert max(began) - min(began) < 0.2


def test_a_process_that_dies_is_told_and_leaves_no_other():
    def kill(_ended):
        for pid in children()[:1]:
            os.kill(pid, signal.SIGKILL)

    with serving(Script(pieces=20, delay=0.02)) as url:
        asks = draw_asks(mix(20))
        script = drive(Server(url, "m"), asks, Team(4, 2), kill)
        with pytest.raises(BedstoneError, match=r"client process \d ended with code -9 before"):
            asyncio.run(script)
    assert children() == []


def test_one_that_cannot_be_started_is_told(monkeypatch):
    monkeypatch.setattr(team, "MODULE", "bedstone.bench.load.no_such")
    script = drive(Server("http://127.0.0.1:1", "m"), draw_asks(mix()), Team(2, 2), print)
    with pytest.raises(BedstoneError, match="client process 1 ended with code 1 before"):
        asyncio.run(script)


def test_none_is_left_where_the_user_leaves():
    async def leave(url):
        seen = asyncio.Event()
        work = asyncio.ensure_future(
            drive(Server(url, "m"), draw_asks(mix(500)), Team(2, 2), lambda _: seen.set())
        )
        await seen.wait()
        assert len(children()) == 2
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    with serving(Script(pieces=2, delay=0.01)) as url:
        asyncio.run(leave(url))
    assert children() == []


@pytest.mark.parametrize(
    ("clients", "cores", "processes"),
    [(1, 1, 1), (8, 16, 1), (64, 16, 8), (64, 4, 2), (900, 99, 8)],
)
def test_processes_fit_clients_and_cores(clients, cores, processes):
    assert fitting_processes(clients, cores) == processes
    assert sum(Team(clients, processes).shares) == clients


def test_no_process_is_without_a_client():
    assert Team(3, 8).shares == [1, 1, 1]
    assert Team(7, 3).shares == [3, 2, 2]
