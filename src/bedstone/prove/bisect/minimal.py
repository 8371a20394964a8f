"""Delta debugging: a smallest subset of changes that fails. Pure.

The algorithm is Zeller and Hildebrandt's ddmin ("Simplifying and Isolating Failure-Inducing
Input", 2002): what it finds fails, and does not once any one change is taken from it.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

Fails = Callable[[frozenset[str]], bool]


def minimal(changes: Sequence[str], fails: Fails) -> tuple[str, ...]:
    """A subset of changes that fails and none of whose changes can be left out.

    All of them together are known to fail, and none is known not to. The first is tried alone
    before anything else: they come in the order in which they are suspected.
    """
    if len(changes) > 1 and fails(frozenset(changes[:1])):
        return (changes[0],)
    return _reduced(tuple(changes), 2, fails)


def _reduced(held: tuple[str, ...], parts: int, fails: Fails) -> tuple[str, ...]:
    while len(held) > 1:
        chunks = _chunks(held, parts)
        one = next((c for c in chunks if fails(frozenset(c))), None)
        if one is not None:
            held, parts = one, 2
            continue
        # of two parts each is the other's complement
        rest = (tuple(x for x in held if x not in c) for c in chunks) if parts > 2 else iter(())
        other = next((r for r in rest if fails(frozenset(r))), None)
        if other is not None:
            held, parts = other, max(parts - 1, 2)
        elif parts < len(held):
            parts = min(len(held), 2 * parts)
        else:
            break
    return held


def _chunks(held: tuple[str, ...], parts: int) -> list[tuple[str, ...]]:
    """`held` in order, in so many parts that differ in length by one at most."""
    ends = [len(held) * at // parts for at in range(parts + 1)]
    return [held[low:high] for low, high in pairwise(ends)]


def culprits(changes: Sequence[str], fails: Fails) -> list[tuple[str, ...]]:
    """Minimal subsets that fail, each of what the ones before it leave, until that does not."""
    rest, found = tuple(changes), []
    while rest and fails(frozenset(rest)):
        found.append(minimal(rest, fails))
        rest = tuple(change for change in rest if change not in found[-1])
    return found
