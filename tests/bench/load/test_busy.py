"""Whether the client is likely what was measured."""

import pytest

from bedstone.bench.load.busy import Busy, Client


def busy(cpu=1.0, seconds=10.0, lags=(0.001,) * 10):
    return Busy(cpu, seconds, lags)


def test_processes_and_rounds_are_one_client():
    found = Client.of([[busy(1.0), busy(4.0)], [busy(2.0), busy(3.0)]], 1000)
    assert (found.processes, found.cpu_seconds, found.share) == (2, 10.0, 0.4)
    assert found.cpu_seconds_per_token == 0.01
    assert found.json()["bound"] is False
    assert Client.of([[busy()]], 0).cpu_seconds_per_token is None


@pytest.mark.parametrize(
    ("each", "bound"),
    [
        (busy(7.9), False),
        (busy(8.1), True),
        (busy(lags=(0.001,) * 9 + (1.0,)), False),
        (busy(lags=(0.001,) * 8 + (0.011,) * 2), True),
        (busy(lags=()), False),
    ],
)
def test_a_full_core_or_a_late_loop_binds(each, bound):
    assert Client.of([[each]], 1).bound is bound
