"""Prefixes on their way to the host's memory, and back.

No step waits for them: what goes has its pages until it is there, what comes is nobody's until
then. Where a device makes copies at once, it is there when that was asked for.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from bedstone.pool import Checkpoint, Evicted, HostRoom, Moves, Parked, Waking
from bedstone.runtime.device import Finished, Moving
from bedstone.runtime.reserve import HostRows, Reserve
from bedstone.spec.frozen import Frozen

States = tuple[tuple[str, int], ...]
"""States by name, each with the bytes of a page or a slot."""


class Coming(Frozen):
    """What is woken of a parked prefix: the state of `tokens`."""

    parked: Parked
    waking: Waking
    tokens: Sequence[int]


class Tier:
    """A block of the host's memory for pages and slots of states.

    `arrived` is called with a checkpoint that is there, and the tokens that it is the state of.
    """

    def __init__(
        self,
        reserve: Reserve,
        room: HostRoom,
        pages: States,
        slots: States,
        arrived: Callable[[Sequence[int], Checkpoint], None],
    ) -> None:
        self._reserve = reserve
        self._room = room
        self._pages = pages
        self._slots = slots
        self._arrived = arrived
        self._under_way: deque[tuple[Moving, Evicted | Coming]] = deque()

    @property
    def leaving(self) -> tuple[int, int]:
        """How many pages and slots what goes has, of which others may use some."""
        gone = [each.checkpoint for _, each in self._under_way if isinstance(each, Evicted)]
        return sum(len(each.pages) for each in gone), sum(each.slot > 0 for each in gone)

    def send(self, evicted: Evicted) -> None:
        """Let a prefix go, once it is on the host."""
        self._under_way.append((self._start(evicted.moves), evicted))

    def fetch(self, coming: Coming) -> None:
        """Have a prefix come back."""
        self._under_way.append((self._start(coming.waking.moves), coming))

    def coming(self, parked: Parked) -> Coming | None:
        """What is on its way back of a prefix."""
        every = (each for _, each in self._under_way if isinstance(each, Coming))
        return next((each for each in every if each.parked is parked), None)

    def go_on(self, *, wait: bool) -> bool:
        """See what is over, in order; whether anything is. `wait` for the first."""
        found = False
        while self._under_way and (wait or self._under_way[0][0].ready):
            moving, what = self._under_way.popleft()
            moving.wait()
            if isinstance(what, Evicted):
                what.close()
            else:
                self._arrived(what.tokens, what.waking.awake())
            found, wait = True, False
        return found

    def close(self) -> None:
        """Let go of the block, once nothing is under way."""
        while self.go_on(wait=True):
            pass
        self._reserve.close()

    def _start(self, moves: Moves) -> Moving:
        if not moves:
            return Finished()
        move = self._reserve.save if moves.to_host else self._reserve.restore
        return move([*self._rows(moves)])

    def _rows(self, moves: Moves) -> Iterator[HostRows]:
        """A run of pages or slots is a row each in every state."""
        for page in moves.pages:
            at, pitch = page.offset, self._room.page_stride
            for name, each in self._pages:
                yield HostRows(name, page.page * each, at, each, page.count, pitch)
                at += each
        for slot in moves.slots:
            at, pitch = slot.offset, self._room.slot_stride
            for name, each in self._slots:
                yield HostRows(name, slot.slot * each, at, each, slot.count, pitch)
                at += each
