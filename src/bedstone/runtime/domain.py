"""What values a caller may write into an input, and how long that lets a sequence be."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CallerError
from bedstone.runtime.memory import Capacity, extents, upper_bounds
from bedstone.spec.expr import evaluate
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Bound, Domain, Fill, Manifest, State
from bedstone.verify.protocol import Protocol

_HOST_ENTRIES = 2**63


class Limits(Frozen):
    """The least and the greatest value of an element, both allowed; None is open."""

    low: int | float | None
    high: int | float | None
    monotone: bool = False


def limits_of(
    domain: Domain, manifest: Manifest, capacity: Capacity, env: Mapping[str, int]
) -> Limits:
    """The limits under the vars `env`; an index is limited by what is reserved, not declared."""
    if domain.index_into is not None:
        entries = _entries(domain.index_into, manifest, capacity) // domain.stride
        return Limits(0, entries - 1, domain.monotone)
    return Limits(_bound(domain.min, env), _bound(domain.max, env), domain.monotone)


def highest(fill: Fill, protocol: Protocol, manifest: Manifest, capacity: Capacity) -> int | None:
    """The greatest value that every input of a fill takes; None where nothing declares one."""
    domains = (manifest.buffers[role.buffer].domain for role in protocol.roles if role.fill == fill)
    env = upper_bounds(manifest)
    limits = (limits_of(each, manifest, capacity, env).high for each in domains if each is not None)
    return min((int(high) for high in limits if high is not None), default=None)


def longest(
    protocol: Protocol, manifest: Manifest, capacity: Capacity, held: int | None = None
) -> int:
    """The longest sequence the tables, the declared positions and `held` tokens of pages allow.

    Raises `CallerError`: nothing bounds it.
    """
    position = highest("position", protocol, manifest, capacity)
    bounds = (held, protocol.reach, None if position is None else position + 1)
    limits = [bound for bound in bounds if bound is not None]
    if not limits:
        raise CallerError("nothing in the manifest bounds a sequence's length")
    return min(limits)


def require_inside(buffer: str, data: NDArray[np.generic], limits: Limits) -> None:
    """Accept elements [n] that lie within the limits; NaN never does.

    Raises `CallerError`: one does not; the message gives the first such element.
    """
    if data.size == 0:
        return
    # as Python numbers: NumPy would round a limit to the elements' own type
    low, high = data.min().item(), data.max().item()
    if limits.low is not None and not limits.low <= low:
        _refuse(buffer, data, limits)
    if limits.high is not None and not high <= limits.high:
        _refuse(buffer, data, limits)
    if limits.monotone and bool(np.any(data[1:] < data[:-1])):  # type: ignore[operator]
        at = int(np.argmax(data[1:] < data[:-1])) + 1  # type: ignore[operator]
        raise CallerError(
            f"input `{buffer}` must not fall: element {at} is {data[at]} after {data[at - 1]}"
        )


def _refuse(buffer: str, data: NDArray[np.generic], limits: Limits) -> None:
    for at, value in enumerate(data.tolist()):
        low = limits.low is None or limits.low <= value
        high = limits.high is None or value <= limits.high
        if not (low and high):
            raise CallerError(
                f"input `{buffer}` element {at} is {value}: expected "
                f"{'-inf' if limits.low is None else limits.low} to "
                f"{'inf' if limits.high is None else limits.high}"
            )


def _bound(bound: Bound | None, env: Mapping[str, int]) -> int | float | None:
    if bound is None or isinstance(bound, int | float):
        return bound
    return evaluate(bound, env)


def _entries(target: str, manifest: Manifest, capacity: Capacity) -> int:
    """How many rows, tokens or bytes of lines an index into `target` may point at."""
    buffer = manifest.buffers.get(target)
    if buffer is not None:
        return extents(buffer.shape, upper_bounds(manifest))[0]
    return _state_entries(manifest.states[target], capacity)


def _state_entries(state: State, capacity: Capacity) -> int:
    if state.host is not None:
        return _HOST_ENTRIES
    if state.bytes_per_token:
        return capacity.reach[0]
    return state.bytes or state.bytes_per_seq * capacity.reach[1]
