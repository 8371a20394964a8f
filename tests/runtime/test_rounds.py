"""What of a round is taken, and which rounds there are."""

import numpy as np
import pytest

from bedstone.errors import CallerError, DeviceError
from bedstone.runtime.rounds import draws, round_of, rows_of_rounds, taken
from bedstone.spec.sampling import Sampling
from bedstone.verify import verify
from bedstone.verify.protocol import protocol
from calls_toy import Calls, calls_manifest

MADE = np.array([[5, 6, 7, 8], [1, 2, 3, 4]], np.int64)


def read(**calls):
    return protocol(verify(calls_manifest("0" * 64, Calls(rounds=(2, 4), **calls))))


def test_so_many_of_each_are_taken():
    shape = read().choose(2, 4)
    assert taken(shape, MADE, np.array([1, 4])) == [[5], [1, 2, 3, 4]]
    assert taken(shape, MADE[:0], np.array([], np.int32)) == []


@pytest.mark.parametrize("count", [0, -1, 5])
def test_a_count_that_no_round_has_is_the_devices_failure(count):
    message = rf"program `step.4.2` set `taken` to {count}: expected 1 to 4"
    with pytest.raises(DeviceError, match=message):
        taken(read().choose(2, 4), MADE, np.array([2, count]))


def test_the_narrowest_round_that_holds_them_is_played():
    contract = read()
    assert [round_of(contract, n, 4).program for n in (1, 2, 3)] == [
        "step.4.2",
        "step.4.2",
        "step.4.4",
    ]
    assert round_of(contract, 5, 4) is None
    assert round_of(contract, 1, 1) is None


def test_the_widest_rounds_are_played_unless_others_are_asked_for():
    assert [rows_of_rounds(read(), rows) for rows in (None, 1, 4)] == [4, 1, 4]
    with pytest.raises(CallerError, match="`rows` is 3"):
        rows_of_rounds(read(), 3)


def test_a_round_that_reads_no_temperature_takes_the_likeliest():
    contract = read(drawn=True)
    hot, cold = Sampling(temperature=1.0), Sampling()
    assert draws(contract, contract.choose(2, 4), cold)
    assert not draws(contract, contract.choose(2, 4), hot)
    assert draws(contract, contract.choose(1, 1), hot)
    assert not draws(read(), read().choose(1, 1), hot)
