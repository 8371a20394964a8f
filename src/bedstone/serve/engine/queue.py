"""The requests that wait, and how they come in."""

from collections.abc import Callable
from collections.abc import Sequence as Items

from bedstone.serve.engine.holdings import Holdings
from bedstone.serve.engine.schedule import Admission, Room, Waiter, plan_entry
from bedstone.serve.engine.sequence import Sequence


class Queue:
    """Sequences without a lease: those that gave way first, then in the order they came.

    `begun` were let in, each once, and waited `waited_seconds` for it together.
    """

    def __init__(
        self, holdings: Holdings, admission: Admission, clock: Callable[[], float]
    ) -> None:
        self._holdings = holdings
        self._admission = admission
        self._clock = clock
        self.begun = 0
        self.waited_seconds = 0.0
        self._waiting: list[Sequence] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, sequence: Sequence) -> None:
        """A sequence waits."""
        self._waiting.append(sequence)
        if sequence.gave_way:
            self._waiting.sort(key=lambda each: (not each.gave_way, each.order))
        else:
            sequence.came = self._clock()

    def remove(self, sequence: Sequence) -> None:
        """A sequence waits no longer."""
        self._waiting.remove(sequence)

    def enter(self, places: int, prompts: Items[Sequence], growing: int) -> list[Sequence]:
        """Those that begin now, with a lease each, beside `prompts` that go in.

        `growing` are all that run.
        """
        if not self._waiting or places <= 0:
            return []
        room = Room(places, self._holdings.free_slots, self._holdings.free_pages, growing)
        waiters = (self._waiter(sequence, prompts) for sequence in self._waiting)
        entry = plan_entry(waiters, room, self._admission)
        for index, times in entry.passed:
            self._waiting[index].passed += times
        begun: list[Sequence] = []
        for sequence in [self._waiting[index] for index in entry.admitted]:
            # two that came together share a prefix: the second waits for the first's
            if any(self._shares(sequence, each) for each in begun):
                continue
            if not self._begin(sequence, alone=not (growing or begun)):
                break
            begun.append(sequence)
        return begun

    def _waiter(self, sequence: Sequence, prompts: Items[Sequence]) -> Waiter:
        pages = self._holdings.pages_for
        return Waiter(
            now=pages(self._room(sequence)),
            worst=pages(sequence.most),
            passed=sequence.passed,
            first=sequence.gave_way,
            held=any(self._shares(sequence, prompt) for prompt in prompts),
        )

    def _room(self, sequence: Sequence) -> int:
        """Tokens to have room for at first: those there are and the one to follow them.

        One that is to make a token alone may do so by a round.
        """
        if self._admission == "worst":
            return sequence.most
        spare = sequence.spare if sequence.suspect else 0
        return min(len(sequence.tokens) + 1 + spare, sequence.most)

    def _shares(self, sequence: Sequence, prompt: Sequence) -> bool:
        """Whether a prompt that is going in is about to be of use to one that waits."""
        # most have nothing in common
        if not self._holdings.reuses or sequence.tokens[0] != prompt.tokens[0]:
            return False
        geometry = self._holdings.geometry
        if geometry.per_sequence:
            count = prompt.prompt - 1
            useful = prompt.fed < count
        else:
            # the first page of those that were not there
            count = geometry.whole(prompt.had) + geometry.unit
            useful = True
        return (
            useful
            and count < len(sequence.tokens)
            and count <= len(prompt.tokens)
            and sequence.tokens[count - 1] == prompt.tokens[count - 1]
            and sequence.tokens[:count] == prompt.tokens[:count]
        )

    def _begin(self, sequence: Sequence, *, alone: bool) -> bool:
        """Lease what a sequence needs; False: there is not as much after all, or not yet."""
        found = self._holdings.begin(
            sequence.tokens, self._room(sequence), wakes=not sequence.woken, wait=alone
        )
        if not isinstance(found, tuple):
            sequence.woken = sequence.woken or found is None
            return False
        sequence.lease, sequence.had = found
        sequence.fed = sequence.had
        if sequence.cached < 0:
            sequence.cached = sequence.had
            self.begun += 1
            self.waited_seconds += self._clock() - sequence.came
        sequence.gave_way = sequence.woken = False
        self._waiting.remove(sequence)
        return True
