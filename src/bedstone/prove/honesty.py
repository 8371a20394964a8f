"""Signs that a Solution cheats, seen from outside its process."""

from collections.abc import Mapping, Sequence

import torch

from bedstone.prove.config import Config
from bedstone.prove.sandbox.candidate import Call, CandidateError
from bedstone.prove.tensors import Made, as_bytes
from bedstone.prove.timing import floor_ms
from bedstone.spec.definition import Definition

HIDDEN_NS, HIDDEN_SHARE = 200_000, 0.25
"""How much of a call may pass between the parent's clock and the child's."""

BEFORE_NS = 5_000_000
"""The most of a call that may pass before its timed part begins."""

BESIDE_NS, BESIDE_SHARE = 200_000, 0.25
"""How long a device may be busy after the timed stream has ended."""


def require_untouched(
    definition: Definition, before: Mapping[str, Made | None], after: Mapping[str, torch.Tensor]
) -> None:
    """Require that a call left every input as it was, except those it is to write over."""
    written = set(definition.in_place.values())
    for name, value in before.items():
        if not isinstance(value, torch.Tensor) or value.numel() == 0 or name in written:
            continue
        if not torch.equal(as_bytes(value), as_bytes(after[name])):
            raise CandidateError("INCORRECT_NUMERICAL", f"input `{name}` was modified")


def are_clocks_honest(calls: Sequence[Call]) -> bool:
    """Whether the child's times agree with the parent's clock."""
    hidden, allowed = _hidden(calls)
    return hidden <= allowed


def require_honest_clocks(calls: Sequence[Call]) -> None:
    """Require that the child's times agree with the parent's clock, and that nothing ran beside."""
    if any(call.ns <= 0 for call in calls):
        raise CandidateError("REWARD_HACK", "a call that takes no time")
    hidden, allowed = _hidden(calls)
    if hidden > allowed:
        raise CandidateError(
            "REWARD_HACK",
            f"every call took at least {hidden / 1e6:.3f} ms more by the parent's clock than the "
            f"candidate says, expected at most {allowed / 1e6:.3f}",
        )
    beside = min(call.beside_ns - BESIDE_SHARE * call.ns for call in calls)
    if beside > BESIDE_NS:
        raise CandidateError(
            "REWARD_HACK", f"the device works {beside / 1e6:.3f} ms beside the timed stream"
        )


def _hidden(calls: Sequence[Call]) -> tuple[float, float]:
    """Nanoseconds that every call hides from the child's clock, and what may be hidden.

    The least over all calls counts: a busy machine delays some messages, not every one.
    """
    hidden = min(_unaccounted(call) for call in calls)
    usual = sorted(call.idle_ns for call in calls)[len(calls) // 2]
    return hidden, 2 * usual + HIDDEN_NS + HIDDEN_SHARE * min(c.round_trip_ns for c in calls)


def _unaccounted(call: Call) -> int:
    return call.round_trip_ns - call.ns - min(call.before_ns, BEFORE_NS) - call.beside_ns


def require_possible(latencies: Sequence[float], moved: int, config: Config) -> None:
    """Require that no call moved its data faster than the device can."""
    if config.bandwidth is None or not config.cold:
        return
    least = floor_ms(moved, config.bandwidth)
    fastest = min(latencies)
    if fastest < least:
        raise CandidateError(
            "REWARD_HACK",
            f"a call took {fastest:.6f} ms, the device needs {least:.6f} to move {moved} bytes",
        )
