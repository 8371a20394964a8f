"""What the next step does: who is let in, which prompts go on, who gives way. Pure.

Requests are let in in the order they came. One that needs more than there is may be passed by
smaller ones behind it, `PATIENCE` times; then all wait for it. Prompts go in piece by piece between
the steps of those that are being answered; the oldest prompt and the one nearest to its end take
turns, so that neither a long prompt nor a stream of short ones holds up the other.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from bedstone.spec.frozen import Frozen

PATIENCE = 16
"""How often a request may be passed by others behind it."""

LOOKED_AT = 32
"""So many behind one that must wait are looked at for one that fits."""

Admission = Literal["needed", "worst"]
"""Whether a sequence gets pages as it grows, and others give way when they run out, or all that it
may ever need at once."""


class Waiter(Frozen):
    """A request that waits: pages it needs to begin, and at most; how often it was passed.

    `first` says that it ran before and gave way: nobody passes it. `held` that the prefix it
    shares with another prompt is being computed: it is passed without a grudge.
    """

    now: int
    worst: int
    passed: int = 0
    first: bool = False
    held: bool = False


class Room(Frozen):
    """What is free: places in a step, slots (None: sequences have none), pages.

    `growing` are the sequences that run, each of which will want another page.
    """

    places: int
    slots: int | None
    pages: int
    growing: int


class Entry(Frozen):
    """Who may begin, as indices of the queue; and who was passed by so many of them."""

    admitted: tuple[int, ...]
    passed: tuple[tuple[int, int], ...]


def plan_entry(waiting: Iterable[Waiter], room: Room, admission: Admission) -> Entry:
    """Who of the queue may begin now; no more of it is asked for than decides that."""
    places = room.places if room.slots is None else min(room.places, room.slots)
    pages, growing = room.pages, room.growing
    admitted: list[int] = []
    passed: dict[int, int] = {}
    stuck: dict[int, Waiter] = {}
    for index, waiter in enumerate(waiting if places > 0 else ()):
        need = waiter.worst if admission == "worst" else waiter.now
        # a page is left for each that grows: else the first to grow would take this one's back
        spare = 0 if admission == "worst" else growing
        if not waiter.held and need + spare <= pages:
            admitted.append(index)
            pages -= need
            growing += 1
            passed = {each: times + 1 for each, times in passed.items()}
        elif not waiter.held:
            passed[index], stuck[index] = 0, waiter
        if (
            len(admitted) == places
            or any(_endured(stuck[each], times) for each, times in passed.items())
            or (stuck and index - min(stuck) >= LOOKED_AT)
        ):
            break
    return Entry(tuple(admitted), tuple((each, n) for each, n in passed.items() if n))


def _endured(waiter: Waiter, times: int) -> bool:
    """Whether nobody may pass a request any more."""
    return waiter.first or waiter.passed + times >= PATIENCE


class Prompt(Frozen):
    """A prompt that is going in: tokens that have, and that have still to."""

    fed: int
    left: int


def plan_chunks(
    prompts: Sequence[Prompt], turn: int, chunk: int, budget: int
) -> tuple[tuple[int, int], ...]:
    """Which prompts go on now, oldest first in `prompts`, and by how many tokens.

    A piece ends where a multiple of `chunk` tokens does, so that the same prompt is cut alike
    whenever it comes. The first piece is taken whatever the `budget` of tokens, others only where
    they fit.
    """
    order = sorted(range(len(prompts)), key=lambda index: (prompts[index].left, index))
    if turn % 2 == 0:
        order = sorted(order, key=lambda index: index != 0)
    found: list[tuple[int, int]] = []
    for index in order:
        prompt = prompts[index]
        count = min(prompt.left, chunk - prompt.fed % chunk)
        if found and count > budget:
            break
        found.append((index, count))
        budget -= count
    return tuple(found)


def plan_calls(
    counts: Sequence[int], alone: Collection[int], rows: int, sequences: int
) -> tuple[tuple[int, ...], ...]:
    """Which pieces go in with one call: neighbours, as far as its rows and sequences hold them.

    Those that are to be `alone` have one each.
    """
    calls: list[list[int]] = []
    room = 0
    for at, count in enumerate(counts):
        joins = calls and room >= count and len(calls[-1]) < sequences
        if joins and at not in alone and calls[-1][0] not in alone:
            calls[-1].append(at)
        else:
            calls.append([at])
            room = rows
        room -= count
    return tuple(map(tuple, calls))
