"""What crosses between fronts and the engine, with both ends in one loop."""

import asyncio
import socket
import threading
import time

import pytest

from bedstone.errors import CallerError, CapacityError, DeviceError
from bedstone.serve.link import hub as hubs
from bedstone.serve.link.channel import HEAD, MOST_FRAME, Channel
from bedstone.serve.link.hub import Desk, Hub
from bedstone.serve.link.link import Ask, Guide
from bedstone.serve.link.local import LocalLink
from bedstone.serve.link.messages import FROM_ENGINE, State, Told
from bedstone.serve.link.remote import RemoteLink
from bedstone.serve.link.samples import added
from bedstone.serve.requests import Finished, Limits, Sampling, Token
from bedstone.serve.workers import Workers
from scripted import ScriptedEngine


class Both:
    """An engine behind a hub, and remote ways to it."""

    def __init__(self, make=lambda _guide, _forced, count: [None] * count, seconds=5.0, **options):
        self.hub = Hub()
        limits = Limits(context=4096, vocab=400, sequences=4, queue=2)
        self.engine = ScriptedEngine(self.hub.deliver, limits=limits, **options)
        self.workers = Workers()
        self.link = LocalLink(self.engine, make, self.workers, time.monotonic, seconds)
        self.lost = []
        self.channels = []

    def run(self, main):
        """Run a test on a loop, and close what it leaves open."""

        async def whole():
            try:
                await main()
            finally:
                for channel in (*self.channels, *(desk.channel for desk in self.hub.desks)):
                    channel.abort()
                await asyncio.sleep(0.01)

        asyncio.run(whole())

    async def remote(self):
        """A remote way, what it is told, and its side's channel."""
        self.hub.bind(asyncio.get_running_loop())
        ours, theirs = socket.socketpair()
        number = len(self.hub.desks)
        desk = Desk(self.hub, self.link, lambda: None, lambda: self.lost.append(number))
        await desk.open(ours, b"hello")
        events, states, frames = [], [], []
        link = RemoteLink(self.link.limits, events.extend, states.append)

        def take(frame):
            frames.append(frame)
            if len(frames) > 1:
                link.take(frame)

        channel = Channel(take, lambda: None)
        await channel.run(theirs)
        self.channels.append(channel)
        link.send = channel.send
        return link, events, channel, frames

    def close(self):
        self.workers.close()
        self.engine.close(0)


@pytest.fixture
def both():
    made = []

    def make(*args, **options):
        made.append(Both(*args, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def ask(*names, tokens=(0,), most=3, **options):
    return Ask(list(tokens), most, [(name, Sampling(seed=2**64 - 1)) for name in names], **options)


async def until(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        await asyncio.sleep(0.005)


def ended(events):
    return {each.request: each.reason for each in events if isinstance(each, Finished)}


def test_each_front_gets_its_own_events_a_message_a_step(both):
    made = both(step=0.002)

    async def main():
        one, told, _, frames = await made.remote()
        other, others, _, _ = await made.remote()
        await one.submit([ask("a", "b"), ask("c", tokens=[4], most=2)])
        await other.submit([ask("d", most=1)])
        await until(lambda: len(ended(told)) == 3 and len(ended(others)) == 1)
        assert [each.token for each in told if isinstance(each, Token) and each.request == "b"] == [
            1, 2, 3,
        ]  # fmt: skip
        assert {each.request for each in others} == {"d"}
        messages = [FROM_ENGINE.decode(each) for each in frames[1:]]
        steps = [each for each in messages if isinstance(each, Told)]
        assert len(steps) <= made.engine.steps
        assert frames[0] == b"hello"
        assert isinstance(messages[0], State)
        assert made.hub.asked_by == {}
        request = made.engine.seen[0]
        assert (request.id, request.sampling.seed, request.deadline) == ("a", 2**64 - 1, None)
        sight = await one.look()
        assert sight.stats.finished["length"] == 4

    made.run(main)


def test_refusals_are_the_engines_own_and_take_none(both, monkeypatch):
    made = both(step=0.002)

    async def main():
        one, told, _, _ = await made.remote()
        other, others, _, _ = await made.remote()
        with pytest.raises(CallerError, match="longer than the context"):
            await one.submit([ask("a"), ask("b", most=5000)])
        await one.submit([ask("c", "d", "e", "f", "g", most=1000)])
        with pytest.raises(CapacityError, match="as many requests wait"):
            await other.submit([ask("h", "i")])
        one.cancel(["c", "d", "e", "f", "g", "nobody"])
        other.cancel(["c"])
        await until(lambda: len(ended(told)) == 5)
        assert set(ended(told).values()) == {"cancelled"}
        assert (told[-1].request in "cdefg", others) == (True, [])
        await until(lambda: made.engine.stats().running == 0)
        assert made.hub.asked_by == {}

        def broken(_request):
            raise DeviceError("gone")

        monkeypatch.setattr(made.engine, "submit", broken)
        with pytest.raises(DeviceError, match="gone"):
            await one.submit([ask("j")])
        assert made.hub.state == State(failed=True)

        def faulty(_request):
            raise ValueError("a secret of the engine's process")

        monkeypatch.setattr(made.engine, "submit", faulty)
        with pytest.raises(RuntimeError, match="process failed"):
            await one.submit([ask("k")])
        assert made.hub.asked_by == {}

    made.run(main)


def test_what_many_are_held_to_and_what_they_share_crosses_once(both):
    made = both()
    sent = []

    async def main():
        one, _, _, _ = await made.remote()
        send, one.send = one.send, lambda frame: (sent.append(len(frame)), send(frame))
        names = [f"{at}" for at in range(6)]
        guide = Guide(grammar="x" * 100_000)
        await one.submit([ask(*names, tokens=[1] * 3000)], guide)
        assert len(made.engine.seen) == len(names)

    made.run(main)
    assert sent[0] < 110_000


def test_guides_are_made_by_workers_in_time_or_refused(both):
    gate = threading.Event()

    def make(guide, _forced, count):
        if guide.grammar == "wait":
            gate.wait(5)
        return [None] * count

    made = both(make, seconds=0.1)

    async def main():
        one, told, _, _ = await made.remote()
        with pytest.raises(CallerError, match=r"more than 0\.1 s"):
            await one.submit([ask("a")], Guide(grammar="wait"))
        gate.set()
        await one.submit([ask("b", seconds=60)], Guide(grammar="at once"))
        await until(lambda: ended(told) == {"b": "length"})
        assert made.engine.seen[-1].deadline > time.monotonic() + 50

    made.run(main)


def test_what_nobody_waits_for_any_more_is_not_begun(both):
    gate = threading.Event()

    def make(_guide, _forced, count):
        gate.wait(5)
        return [None] * count

    made = both(make)

    async def main():
        one, told, _, _ = await made.remote()
        asking = asyncio.ensure_future(one.submit([ask("a")], Guide(grammar="x")))
        await until(lambda: "a" in made.hub.asked_by)
        asking.cancel()
        await until(lambda: not made.hub.asked_by)
        gate.set()
        await one.submit([ask("b")])
        await until(lambda: ended(told) == {"b": "length"})
        assert [request.id for request in made.engine.seen] == ["b"]

    made.run(main)


def test_a_front_that_goes_leaves_nothing_but_its_counts(both):
    made = both(step=0.002)
    counted = {"answers": [("answers_total", (("finish", "stop"),), 2.0)]}

    async def main():
        one, _, channel, _ = await made.remote()
        other, told, _, _ = await made.remote()
        one.count(counted)
        await one.submit([ask("a", most=4000)])
        await other.submit([ask("b", most=100)])
        channel.abort()
        await until(lambda: made.lost == [0])
        await until(lambda: ended(told) == {"b": "length"})
        assert made.engine.finished["cancelled"] == 1
        other.count(counted)
        assert (await other.look()).others == counted

    made.run(main)


def test_a_front_that_takes_nothing_is_cut_off_and_the_engine_goes_on(both, monkeypatch, caplog):
    monkeypatch.setattr(hubs, "MOST_WAITING", 10_000)
    made = both()

    async def main():
        await made.remote()
        ours, theirs = socket.socketpair()
        desk = Desk(made.hub, made.link, lambda: None, lambda: made.lost.append("stuck"))
        await desk.open(ours, b"")
        with theirs:
            end = time.monotonic() + 10
            while "stuck" not in made.lost:
                assert time.monotonic() < end
                desk.tell(Told([Token("a", 1)] * 100))
                await asyncio.sleep(0)

    made.run(main)
    assert "it is cut off" in caplog.text


def test_frames_come_whole_however_they_are_cut():
    messages = [b"", b"a", bytes(1000), b"end"]
    sent = b"".join(HEAD.pack(len(each)) + each for each in messages)
    for size in (1, 3, 7, 500, len(sent)):
        taken, lost = [], []
        channel = Channel(taken.append, lambda lost=lost: lost.append(1))
        for at in range(0, len(sent), size):
            channel.data_received(sent[at : at + size])
        assert taken == messages
        channel.connection_lost(None)
        channel.send(b"to nobody")
        assert (lost, channel.waiting) == ([1], 0)


def test_what_is_no_message_ends_the_channel(both):
    made = both()

    async def main():
        _, _, channel, _ = await made.remote()
        channel._transport.write(HEAD.pack(MOST_FRAME + 1))
        await until(lambda: made.lost == [0])

    made.run(main)


def test_samples_add_up():
    one = {"a": [("a_total", (("x", "1"),), 2.0), ("a_total", (("x", "2"),), 1.0)]}
    other = {"a": [("a_total", (("x", "2"),), 3.0)], "b": [("b_sum", (), 0.5)]}
    assert added([one, {}, other]) == {
        "a": [("a_total", (("x", "1"),), 2.0), ("a_total", (("x", "2"),), 4.0)],
        "b": [("b_sum", (), 0.5)],
    }
    assert added([]) == {}
