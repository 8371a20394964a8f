"""A long list of calls in few words: what repeats is written once."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

_LONGEST_PERIOD = 512
_WIDTH = 92
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Repeat:
    """`names`, `times` over."""

    times: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        inner = " · ".join(map(str, repeats(self.names))) if self.times > 1 else self.names[0]
        if self.times == 1:
            return inner
        return f"{self.times} × {inner}" if len(self.names) == 1 else f"{self.times} × ({inner})"


def repeats(names: Sequence[str]) -> list[Repeat]:
    """`names` from left to right, each stretch that repeats at once taken as one."""
    found, at = [], 0
    while at < len(names):
        period, times = _widest(names, at)
        found.append(Repeat(times, tuple(names[at : at + period])))
        at += period * times
    return found


def _widest(names: Sequence[str], at: int) -> tuple[int, int]:
    """The period and count that cover the most from `at` on, the shorter period where equal."""
    best = (1, 1)
    for period in range(1, min(_LONGEST_PERIOD, (len(names) - at) // 2) + 1):
        times = _times(names, at, period)
        if times > 1 and times * period > best[0] * best[1]:
            best = (period, times)
    return best


def _times(names: Sequence[str], at: int, period: int) -> int:
    times, end = 1, at + period
    while names[at] == names[end] and names[at : at + period] == names[end : end + period]:
        times, end = times + 1, end + period
        if end + period > len(names):
            break
    return times


def spelled(names: Sequence[str]) -> list[str]:
    """The calls of a program as lines of text."""
    found = repeats(names)
    words = [str(repeat) for repeat in found[:_SHOWN]]
    left = sum(repeat.times * len(repeat.names) for repeat in found[_SHOWN:])
    text = " · ".join([*words, f"{left} more calls"] if left else words)
    return textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
