"""When something is due of each of some sequences, counted in steps that all of them take."""

from heapq import heappop, heappush

from bedstone.serve.engine.sequence import Sequence

NEVER = 2**62
_SPARE = 64


class Dues:
    """The steps at which something is due, the soonest known at once."""

    __slots__ = ("_heap", "_of")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._of: dict[int, tuple[int, Sequence]] = {}

    def set(self, sequence: Sequence, step: int) -> None:
        """It is due of a sequence at that step, and no longer at another."""
        self._of[sequence.order] = step, sequence
        heappush(self._heap, (step, sequence.order))
        if len(self._heap) > _SPARE + 2 * len(self._of):
            self._heap = sorted((at, order) for order, (at, _) in self._of.items())

    def drop(self, sequence: Sequence) -> None:
        """It is never due of a sequence."""
        self._of.pop(sequence.order, None)

    def of(self, sequence: Sequence) -> int:
        """When it is due of one of them."""
        return self._of[sequence.order][0]

    def soonest(self) -> int:
        """When it is due first."""
        heap = self._heap
        while heap:
            step, order = heap[0]
            found = self._of.get(order)
            if found is not None and found[0] == step:
                return step
            heappop(heap)
        return NEVER

    def until(self, step: int) -> list[Sequence]:
        """Those of which it is due by then, the soonest first."""
        found: list[tuple[int, Sequence]] = []
        while self.soonest() <= step:
            _, order = heappop(self._heap)
            found.append(self._of[order])
        # each once, however often it was said
        some = {sequence.order: (at, sequence) for at, sequence in found}
        for order, (at, _) in some.items():
            heappush(self._heap, (at, order))
        return [sequence for _, sequence in some.values()]
