"""Modules compiled side by side: in order, told of, and given up where one fails."""

import time
from pathlib import Path

import pytest

from bedstone.errors import KernelError
from bedstone.target.side_by_side import side_by_side, untold

MANY, LONG = 2000, 0.01
"""So many builds of so many seconds each are not over before the first is heard of."""


def test_what_is_built_comes_in_order_and_each_is_told_of():
    told = []
    names = [str(i) for i in range(20)]
    made = side_by_side(Path, names, lambda done, total: told.append((done, total)))
    assert made == tuple(map(Path, names))
    assert told == [(done, 20) for done in range(1, 21)]
    assert side_by_side(Path, [], untold) == ()


def test_where_one_fails_what_is_not_begun_never_is():
    begun = []

    def build(name: int) -> Path:
        begun.append(name)
        time.sleep(LONG)
        if name == 0:
            raise KernelError("`a.cu` does not compile")
        return Path("made")

    with pytest.raises(KernelError, match=r"a\.cu"):
        side_by_side(build, range(MANY), untold)
    assert len(begun) < MANY


def test_an_interrupt_leaves_what_is_not_begun():
    begun = []

    def build(name: int) -> Path:
        begun.append(name)
        time.sleep(LONG)
        return Path("made")

    def interrupt(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        side_by_side(build, range(MANY), interrupt)
    assert len(begun) < MANY
