"""Where this thread's memory is taken from, as the system says."""

import ctypes

import pytest

from bedstone.runtime.cuda import near as nodes
from bedstone.runtime.cuda.near import near


def policy():
    found = nodes._policy()
    if found is None:
        pytest.skip("the system does not tell where memory is taken from")
    mode, mask = found
    return mode, sum(word << 64 * at for at, word in enumerate(mask))


def test_memory_is_of_a_node_meanwhile_and_from_wherever_it_was_then():
    before = policy()
    with near(0):
        inside = policy()
    assert policy() == before
    assert inside in ((2, 1), before)
    with near(0), near(0):
        pass
    assert policy() == before


@pytest.mark.parametrize("node", [-1, 1023, 1024, 10**6])
def test_a_node_that_is_not_there_changes_nothing(node):
    before = policy()
    with near(node):
        assert policy() == before
    assert policy() == before


def test_a_failure_inside_changes_it_back():
    before = policy()
    with pytest.raises(KeyError), near(0):
        raise KeyError
    assert policy() == before


@pytest.mark.parametrize("refuses", ["get", "set", "machine"])
def test_a_system_that_refuses_is_left_alone(monkeypatch, refuses):
    asked = []

    def call(number, *_):
        asked.append(number)
        return -1 if refuses == "get" or number == 2 else 0

    machine = "riscv" if refuses == "machine" else "m"
    monkeypatch.setattr(nodes, "_CALLS", {"m": (1, 2)})
    monkeypatch.setattr(nodes.platform, "machine", lambda: machine)
    monkeypatch.setattr(nodes, "_call", call)
    with near(3):
        pass
    assert asked == {"get": [1], "set": [1, 2], "machine": []}[refuses]


def test_a_bit_stands_for_a_node():
    mask = nodes._mask_of(70)
    assert [at for at, word in enumerate(mask) if word] == [
        70 // (8 * ctypes.sizeof(ctypes.c_ulong))
    ]
    assert max(mask) == 1 << 6
