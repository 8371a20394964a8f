"""What each launch of a built-in is given, at every assignment of vars it can run under. Pure."""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod

from bedstone.errors import KernelError
from bedstone.runtime.device import BuiltinUse
from bedstone.runtime.lower import (
    Computed,
    Kernel,
    LoweredLaunch,
    LoweredProgram,
    Pointer,
    Slot,
    Word,
)
from bedstone.spec.expr import ExprError, evaluate, reads
from bedstone.spec.manifest import Manifest, When

_MOST_ASSIGNMENTS = 2**18


def builtin_uses(
    program: LoweredProgram, manifest: Manifest, room: Callable[[Pointer], int]
) -> Iterator[tuple[Kernel, BuiltinUse]]:
    """Every launch of a built-in that the vars let run; `room` is bytes from a pointer on.

    Raises `KernelError`: numbers overflow, or a pinned one would run at more sizes than are tried.
    """
    most = {name: var.max for name, var in manifest.vars.items()}
    for launch in program.launches:
        if launch.kernel.module is not None:
            continue
        ranges = _ranges(launch, most)
        if not all(ranges.values()):
            continue
        upper = {name: values[-1] for name, values in ranges.items()}
        yield (
            launch.kernel,
            BuiltinUse(
                site=launch.site,
                room=tuple(room(slot) for slot in launch.slots if isinstance(slot, Pointer)),
                largest=_numbers(launch, upper),
                reachable=_reachable(launch, ranges) if launch.kernel.algo else (),
            ),
        )


def _ranges(launch: LoweredLaunch, most: Mapping[str, int]) -> dict[str, range]:
    """The values of each var that the launch's numbers and its condition read."""
    names = launch.reads
    return {name: _allowed(launch.when, name, most[name]) for name in sorted(names)}


def _allowed(when: When | None, name: str, most: int) -> range:
    if when is None or when.var != name:
        return range(1, most + 1)
    low = 1 if when.min is None else max(1, when.min)
    return range(low, (most if when.max is None else min(most, when.max)) + 1)


def _reachable(launch: LoweredLaunch, ranges: Mapping[str, range]) -> tuple[tuple[int, ...], ...]:
    read = sorted(
        frozenset[str]().union(*(reads(s.expr) for s in launch.slots if isinstance(s, Computed)))
    )
    if prod(len(ranges[name]) for name in read) > _MOST_ASSIGNMENTS:
        raise KernelError(
            f"{launch.site}: a pinned algorithm is checked at every size it can run at, and "
            f"`{'`, `'.join(read)}` give more than {_MOST_ASSIGNMENTS}"
        )
    assignments = product(*(ranges[name] for name in read))
    found = {_numbers(launch, dict(zip(read, values, strict=True))) for values in assignments}
    return tuple(sorted(found))


def _numbers(launch: LoweredLaunch, env: Mapping[str, int]) -> tuple[int, ...]:
    try:
        return tuple(_value(slot, env) for slot in launch.slots if not isinstance(slot, Pointer))
    except ExprError as error:
        raise KernelError(
            f"{launch.site}: a number has no value at {dict(env)}: {error}"
        ) from error


def _value(slot: Slot, env: Mapping[str, int]) -> int:
    match slot:
        case Word(value):
            return value
        case Computed(expr):
            return evaluate(expr, env)
        case _:
            raise KernelError("a built-in takes pointers and numbers, not a pack")
