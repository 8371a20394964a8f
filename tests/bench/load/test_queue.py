"""Requests are taken once, in their order."""

import os
from tempfile import TemporaryFile

from bedstone.bench.load.queue import Queue, Queued, write_queue


def test_two_who_share_it_take_each_request_once_in_order():
    bodies, times = [b"a", b"", b"ccc"], [0.5, None, 0.0]
    with TemporaryFile() as file:
        ours = write_queue(file, bodies, times)
        # as a process that inherits it has it
        other = os.dup(file.fileno())
        theirs = Queue(other)
        taken = [ours.next(), theirs.next(), ours.next(), theirs.next(), ours.next()]
        os.close(other)
    expected = [Queued(at, *each) for at, each in enumerate(zip(bodies, times, strict=True))]
    assert taken == [*expected, None, None]


def test_none_are_none():
    with TemporaryFile() as file:
        assert write_queue(file, [], []).next() is None
