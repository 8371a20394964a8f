"""What the log says of an engine's rates, and when it says anything."""

import logging
import time

import pytest

from bedstone.serve.rates import Watch, rates
from bedstone.serve.requests import Stats

NOTHING = {
    "running": 0, "waiting": 0, "batch": (), "pages_total": 0, "pages_held": 0, "pages_cached": 0,
    "steps": 0, "step_seconds": 0.0, "host_seconds": 0.0, "begun": 0, "waited_seconds": 0.0,
    "prompt_tokens": 0, "cached_tokens": 0,
    "fed_tokens": 0, "made_tokens": 0, "finished": {}, "preempted": 0, "evicted": 0, "parked": 0,
}  # fmt: skip


def stats(**given):
    return Stats(**{**NOTHING, **given})


def test_rates_are_of_the_time_between_two_pictures():
    before = stats(
        steps=100, step_seconds=1.0, prompt_tokens=50, cached_tokens=40, fed_tokens=70,
        made_tokens=1000, preempted=1, evicted=2, parked=1, pages_total=64, begun=4,
        waited_seconds=1.0,
    )  # fmt: skip
    after = stats(
        running=3, waiting=2, pages_total=64, pages_held=16, pages_cached=8, steps=150,
        step_seconds=1.5, prompt_tokens=150, cached_tokens=65, fed_tokens=170, made_tokens=1500,
        preempted=2, evicted=4, parked=2, begun=8, waited_seconds=7.0, woken=3, remaps=1,
        slots_total=4, slots_held=3, prefixes_parked=5, host_bytes=3 << 29,
    )  # fmt: skip
    assert rates(before, after, 5.0) == (
        "3 running, 2 waiting, 1.5 s in the queue, pages 25% held 12% kept, slots 75% held, "
        "50 steps of 10.0 ms, 100 tokens/s made, 20 read, 25% of prompts cached, "
        "1.5 GiB of 5 prefixes on the host, 2 evicted, 1 parked, 3 woken, 1 remapped, 1 gave way"
    )


def test_tokens_of_a_round_are_the_first_and_the_drafts_that_were_right():
    before = stats(rounds=10, drafted=30, accepted=(8, 4, 2))
    after = stats(rounds=30, drafted=90, accepted=(24, 10, 5))
    assert rates(before, after, 1.0).endswith(", 0 read, 2.25 tokens a round")


def test_what_there_is_none_of_is_not_said():
    idle = stats()
    assert (
        rates(idle, stats(running=1, begun=9, waited_seconds=0.4), 2.0)
        == "1 running, 0 waiting, 0 tokens/s made, 0 read"
    )


class Engine:
    """Pictures in turn, the last one for ever."""

    def __init__(self, *pictures):
        self.pictures = list(pictures)

    def stats(self):
        return self.pictures.pop(0) if len(self.pictures) > 1 else self.pictures[0]


@pytest.mark.parametrize(
    ("pictures", "told"),
    [
        ([stats(), stats(running=1), stats(running=1), stats(steps=9), stats(steps=9)], 3),
        ([stats(), stats(waiting=1), stats()], 1),
        ([stats(steps=7), stats(steps=7)], 0),
    ],
)
def test_it_is_quiet_while_nothing_is_done(caplog, pictures, told):
    engine = Engine(*pictures)
    with caplog.at_level(logging.INFO, "bedstone.serve"):
        with Watch(engine.stats, time.monotonic, 0.005):
            while len(engine.pictures) > 1:
                time.sleep(0.002)
            time.sleep(0.05)
        count = len(caplog.records)
        time.sleep(0.02)
    assert count == len(caplog.records) == told
