"""Numbers that are free or have users, the lowest free one given first."""

from collections.abc import Iterable
from heapq import heappop, heappush

from bedstone.spec.frozen import Frozen


class Tally(Frozen):
    """How many there are: free, held by a lease, or kept by checkpoints alone.

    Not among them are those `absent`, which have no memory, those `arriving` and those `leaving`.
    """

    total: int
    free: int
    held: int
    absent: int = 0
    arriving: int = 0
    leaving: int = 0

    @property
    def kept(self) -> int:
        """Those that no lease uses but a checkpoint does: what eviction can make free."""
        return self.total - self.free - self.held


class Stock:
    """Numbers from `first` up to `stop`, each with a count of its users.

    A user is a lease or it is not. Every call costs what it names; none looks at the rest.
    """

    def __init__(self, first: int, stop: int) -> None:
        self._users = [0] * stop
        self._leases = [0] * stop
        self._total = max(0, stop - first)
        self._never_used = first
        self._returned: list[int] = []
        self._free = self._total
        self._held = 0

    @property
    def tally(self) -> Tally:
        """How many are free and held."""
        return Tally(self._total, self._free, self._held)

    @property
    def free(self) -> int:
        """How many can be taken."""
        return self._free

    def leased(self, number: int) -> bool:
        """Whether a lease is among its users."""
        return self._leases[number] > 0

    def take(self, count: int, *, leased: bool) -> tuple[int, ...]:
        """The lowest `count`, ascending, of which `free` must be as many at least."""
        taken = tuple(self._lowest() for _ in range(count))
        self._free -= count
        self.add(taken, leased=leased)
        return taken

    def add(self, numbers: Iterable[int], *, leased: bool) -> None:
        """One user more for each."""
        for number in numbers:
            self._users[number] += 1
            if leased:
                self._leases[number] += 1
                self._held += self._leases[number] == 1

    def drop(self, numbers: Iterable[int], *, leased: bool) -> list[int]:
        """One user less for each; those that have none any more, which are free."""
        freed = []
        for number in numbers:
            self._users[number] -= 1
            if leased:
                self._leases[number] -= 1
                self._held -= self._leases[number] == 0
            if not self._users[number]:
                freed.append(number)
                heappush(self._returned, number)
        self._free += len(freed)
        return freed

    def _lowest(self) -> int:
        if self._returned:
            return heappop(self._returned)
        self._never_used += 1
        return self._never_used - 1
