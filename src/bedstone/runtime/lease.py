"""Which pages and which slot of the states a sequence has. Pure."""

from collections.abc import Sequence

from bedstone.errors import CallerError
from bedstone.runtime.memory import Capacity
from bedstone.spec.frozen import Frozen
from bedstone.verify.protocol import LineTable, PageTable, Protocol


class Lease(Frozen):
    """Pages of `unit` tokens in the order the sequence fills them, and its slot.

    A page number addresses every paged state: a table whose own pages are smaller has several
    entries for it.
    """

    pages: tuple[int, ...]
    unit: int
    slot: int = 1

    @property
    def tokens(self) -> int:
        """How many tokens the pages hold."""
        return len(self.pages) * self.unit

    def token_slot(self, position: int) -> int:
        """Where the token at `position` lies in a paged state."""
        page, inside = divmod(position, self.unit)
        return self.pages[page] * self.unit + inside

    def page_entries(self, table: PageTable) -> list[int]:
        """The table's row for this sequence [pages], its first entry repeated past the end."""
        each = self.unit // table.tokens
        row = [page * each + part for page in self.pages for part in range(each)][: table.pages]
        return row + row[:1] * (table.pages - len(row))

    def line_entries(self, table: LineTable) -> list[int]:
        """The sequence's lines [lines] of a per-sequence state."""
        return [self.slot * table.lines_per_slot + line for line in range(table.lines)]


def whole_lease(
    protocol: Protocol, capacity: Capacity, pages: Sequence[int] | None = None, slot: int = 1
) -> Lease:
    """A lease of everything one sequence can use; `pages` says which and in which order.

    Raises `CallerError`: a page is named twice or is not there.
    """
    unit = protocol.page_tokens or capacity.unit
    there = capacity.tokens // unit
    row = min((t.tokens * t.pages // unit for t in protocol.page_tables), default=there)
    taken = tuple(range(there) if pages is None else pages)
    if len(set(taken)) < len(taken) or not all(0 <= page < there for page in taken):
        raise CallerError(
            f"pages {list(taken)}: expected different ones, each from 0 to {there - 1}"
        )
    return Lease(taken[:row], unit, slot)
