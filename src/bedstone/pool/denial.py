"""Why a pool gives nothing, one type a cause, each with what would help. Values, not errors."""

from bedstone.spec.frozen import Frozen


class ExceedsRow(Frozen):
    """No row of a page table is as long: `limit` tokens at most. Ask for fewer."""

    tokens: int
    limit: int

    def __str__(self) -> str:
        return f"{self.tokens} tokens are more than the {self.limit} of a row: ask for fewer"


class ExceedsPool(Frozen):
    """Not even the empty pool has as much. Ask for less, or reserve a larger pool."""

    pages: int
    slots: int
    pages_total: int
    slots_total: int

    def __str__(self) -> str:
        return (
            f"{self.pages} pages and {self.slots} slots are more than the {self.pages_total} and"
            f" {self.slots_total} there are: ask for fewer or reserve more"
        )


class Busy(Frozen):
    """Others have it; `pages` and `slots` are how many more must be free.

    Evict prefixes that no sequence uses, then look the prefix up again; else wait for a sequence
    to end, or retire and park one.
    """

    pages: int
    slots: int

    def __str__(self) -> str:
        return (
            f"{self.pages} pages and {self.slots} slots more must be free: evict prefixes or wait"
            " until a sequence ends"
        )


class Remapping(Frozen):
    """Memory is on its way from pages to slots, or back: ask again, and evict nothing.

    `pages` and `slots` are how many more must be free. `Pool.remap` is what is to be moved.
    """

    pages: int
    slots: int

    def __str__(self) -> str:
        return f"{self.pages} pages and {self.slots} slots more are on their way: ask again"


class HostFull(Frozen):
    """The host tier has no place for `nbytes` more of its `total`: drop what is parked.

    `total` 0 is a pool without host tier; `nbytes` above `total` never fits: drop it instead.
    """

    nbytes: int
    total: int

    def __str__(self) -> str:
        return (
            f"{self.nbytes} bytes more have no place in the {self.total} of the host tier: drop"
            " what is parked there"
        )


Denial = ExceedsRow | ExceedsPool | Busy | Remapping | HostFull
