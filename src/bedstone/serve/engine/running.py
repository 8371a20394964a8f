"""The sequences that hold something: prompts that go in, and the rows of a step."""

from bedstone.pool import Lease
from bedstone.serve.engine.calls import Calls
from bedstone.serve.engine.holdings import Holdings
from bedstone.serve.engine.rows import Rows
from bedstone.serve.engine.sequence import Sequence

_SOON = 16
"""Steps in which a page is wanted soon."""


class Running:
    """`prompts` in the order they began, and `rows`, of which all but the last token are in.

    In between they are `ready`: rows are taken between two steps, so that while one is under way
    its rows are those of the next.
    """

    def __init__(self, holdings: Holdings, rows: Rows, calls: Calls) -> None:
        self.prompts: list[Sequence] = []
        self.ready: list[Sequence] = []
        self.rows = rows
        self._holdings = holdings
        self._calls = calls

    def __len__(self) -> int:
        return len(self.prompts) + len(self.ready) + len(self.rows)

    def held(self) -> list[tuple[Sequence, int]]:
        """Each with how many tokens its states hold."""
        waits = [(sequence, sequence.fed) for sequence in (*self.prompts, *self.ready)]
        return [*waits, *self.rows.held()]

    def youngest(self) -> Sequence:
        """The one that came last."""
        every = (*self.prompts, *self.ready, *self.rows.sequences)
        return max(every, key=lambda each: each.order)

    def is_in(self, sequence: Sequence) -> None:
        """All but the last token of a prompt are in: its sequence waits for a row."""
        self.prompts.remove(sequence)
        self.ready.append(sequence)

    def seat(self) -> None:
        """Those that are ready take a row each."""
        for sequence in self.ready:
            self._calls.seat(sequence)
        self.ready.clear()

    def extend(self, sequence: Sequence, ahead: int) -> bool:
        """Have room for the next `ahead` tokens of a row; False: there are no pages for them."""
        lease, row = _lease(sequence), sequence.row
        had = len(lease.pages)
        tokens = min(self.rows.fed(sequence) + ahead, sequence.most)
        if not self._holdings.extend(lease, tokens):
            return False
        more = lease.pages[had:]
        self._calls.grow([row] * len(more), range(had, had + len(more)), more)
        return True

    def extend_all(self, ahead: int) -> bool:
        """Have room for the next `ahead` tokens of every row; False: there are no pages for them.

        Whoever wants another page soon gets one too, where no sequence holds it: looking for those
        costs more than a page.
        """
        if not self.rows.short(ahead):
            return True
        while some := self.rows.short(ahead + _SOON):
            few = self._holdings.free_pages < len(self) + len(some)
            if few or not self._holdings.make_idle(len(some)):
                break
            leases = [_lease(sequence) for sequence in some]
            places = [len(lease.pages) for lease in leases]
            rows = [sequence.row for sequence in some]
            self._calls.grow(rows, places, self._holdings.grow(leases))
        return all(self.extend(sequence, ahead) for sequence in self.rows.short(ahead))

    def keep(self, sequence: Sequence) -> None:
        """Keep for others what is in of a prompt."""
        self._holdings.keep(_lease(sequence), sequence.tokens[: sequence.fed])

    def leave(self, sequence: Sequence, *, keep: bool) -> None:
        """A sequence gives back what it holds; `keep` what it computed for others."""
        lease = _lease(sequence)
        if sequence.row >= 0:
            self._calls.unseat(*self.rows.remove(sequence))
        else:
            (self.ready if sequence in self.ready else self.prompts).remove(sequence)
        sequence.lease = None
        if keep:
            self._holdings.retire(lease, sequence.tokens[: sequence.fed])
        else:
            lease.close()


def _lease(sequence: Sequence) -> Lease:
    if sequence.lease is None:
        raise AssertionError(f"sequence `{sequence.id}` runs without a lease")
    return sequence.lease
