"""The sequences that hold something: prompts that go in, and the rows of a step."""

from collections.abc import Iterable

from bedstone.pool import Lease
from bedstone.serve.engine.calls import Calls
from bedstone.serve.engine.holdings import Holdings
from bedstone.serve.engine.rows import Rows
from bedstone.serve.engine.sequence import Sequence

_SOON = 8
"""Steps in which a page is wanted soon."""


class Running:
    """`prompts` in the order they began, and `rows`, of which all but the last token are in."""

    def __init__(self, holdings: Holdings, rows: Rows, calls: Calls) -> None:
        self.prompts: list[Sequence] = []
        self.rows = rows
        self._holdings = holdings
        self._calls = calls

    def __len__(self) -> int:
        return len(self.prompts) + len(self.rows)

    def held(self) -> list[tuple[Sequence, int]]:
        """Each with how many tokens its states hold."""
        return [*((sequence, sequence.fed) for sequence in self.prompts), *self.rows.held()]

    def youngest(self) -> Sequence:
        """The one that came last."""
        return max((*self.prompts, *self.rows.sequences), key=lambda each: each.order)

    def seat(self, sequence: Sequence) -> None:
        """A prompt is in: its sequence takes a row."""
        self.prompts.remove(sequence)
        self.rows.add(sequence, needs_host=sequence.slow)
        self._calls.seat(sequence)

    def extend(self, sequence: Sequence, ahead: int) -> bool:
        """Have room for the next `ahead` tokens of a row; False: there are no pages for them."""
        return self._extend([sequence], ahead, idle=0)

    def extend_all(self, ahead: int) -> bool:
        """Have room for the next `ahead` tokens of every row; False: there are no pages for them.

        Whoever wants another page soon gets one too, where nobody holds it: looking for those costs
        more than a page.
        """
        if not (short := self.rows.short(ahead)):
            return True
        if not self._extend(short, ahead, idle=0):
            return False
        self._extend(self.rows.short(ahead + _SOON), ahead + _SOON, idle=len(self))
        return True

    def _extend(self, some: Iterable[Sequence], ahead: int, *, idle: int) -> bool:
        """Have room for some rows' tokens; False: not for one of them, or fewer pages are idle."""
        at, more, done = self.rows.positions, list[tuple[int, int, int]](), True
        for sequence in some:
            lease, row = _lease(sequence), sequence.row
            had = len(lease.pages)
            done = self._holdings.idle_pages >= idle and self._holdings.extend(
                lease, min(int(at[row]) + ahead, sequence.most)
            )
            if not done:
                break
            more += [(row, place, page) for place, page in enumerate(lease.pages[had:], had)]
        self._calls.grow(more)
        return done

    def keep(self, sequence: Sequence) -> None:
        """Keep for others what is in of a prompt."""
        self._holdings.keep(_lease(sequence), sequence.tokens[: sequence.fed])

    def leave(self, sequence: Sequence, *, keep: bool) -> None:
        """A sequence gives back what it holds; `keep` what it computed for others."""
        lease = _lease(sequence)
        if sequence.row >= 0:
            self._calls.unseat(*self.rows.remove(sequence))
        else:
            self.prompts.remove(sequence)
        sequence.lease = None
        if keep:
            self._holdings.retire(lease, sequence.tokens[: sequence.fed])
        else:
            lease.close()


def _lease(sequence: Sequence) -> Lease:
    if sequence.lease is None:
        raise AssertionError(f"sequence `{sequence.id}` runs without a lease")
    return sequence.lease
