"""The null device: it looks at launches and places, and runs nothing."""

import numpy as np
import pytest

from bedstone.errors import DeviceError
from bedstone.runtime.device import Places
from bedstone.runtime.load import load
from bedstone.runtime.lower import Region


def test_null_checks_a_package_without_running_it(toy):
    with load(toy, device="null") as session:
        session.write("token", np.array([1, 2], np.int32))
        session.run("prefill", tokens=2)
        session.run("decode")
        assert session.read("next").tolist() == [0]
        assert not session.region("kv").any()


def test_null_refuses_elements_that_go_nowhere(toy):
    with load(toy, device="null") as session:
        token, data = session.input("token"), np.ones(2, np.int32)
        token.put_places(Places(np.array([0, 7]), 0, 7, 0, 0), np.array([1, 2]))
        memory = session.loaded.memory[Region("buffer", "token")]
        with pytest.raises(DeviceError, match="never allocated"):
            session.loaded.device.open(memory).scatter(
                Places(np.array([0, 2**40]), 0, 2**40, 0, 0), 1, data
            )


def test_null_refuses_a_launch_list_that_leads_nowhere(toy):
    with load(toy, device="null") as session:
        capture = session._programs["decode"].capture({})
        args = int(capture.words[1] - capture.address) // 8
        capture.words[args] += np.uint64(2**50)
        with pytest.raises(DeviceError, match="never allocated"):
            session.run("decode")
        capture.words[0] = 99
        with pytest.raises(DeviceError, match="launch #0 runs no known function: 99"):
            session.run("decode")
