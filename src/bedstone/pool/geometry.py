"""What there is to lease, and how tokens map to pages."""

from bedstone.errors import CallerError
from bedstone.spec.frozen import Frozen


class Geometry(Frozen):
    """The pages and slots of a pool.

    `pages` of `unit` tokens, each number addressing every paged state; none where no state is
    paged. A sequence has `row` of them at most. `slots` are those of the per-sequence states with
    the null line, number 0, which is never leased; none where there is no such state.

    Raises `CallerError`: a number is out of range.
    """

    pages: int = 0
    unit: int = 1
    row: int = 0
    slots: int = 0

    def __post_init__(self) -> None:
        if self.pages < 0 or self.unit < 1 or (self.pages and self.row < 1):
            raise CallerError(
                f"{self.pages} pages of {self.unit} tokens, {self.row} a row: expected a page of"
                " one token at least, and a row of one page at least where there are pages"
            )
        if self.slots < 0 or self.slots == 1:
            raise CallerError(
                f"`slots` is {self.slots}: expected 0, or the null line and one slot at least"
            )

    @property
    def per_sequence(self) -> bool:
        """Whether a sequence has a slot: its state is that of one exact length then."""
        return self.slots > 0

    @property
    def limit(self) -> int | None:
        """The most tokens a sequence can have; None without pages, where nothing bounds them."""
        return self.row * self.unit if self.pages else None

    def pages_for(self, tokens: int) -> int:
        """How many pages hold that many tokens."""
        return -(-tokens // self.unit) if self.pages else 0

    def last_page(self, tokens: int) -> int:
        """How many of them the last page holds: 1 to `unit`.

        Raises `CallerError`: no tokens have no last page.
        """
        if tokens < 1:
            raise CallerError(f"{tokens} tokens have no last page: expected 1 at least")
        return (tokens - 1) % self.unit + 1

    def whole(self, tokens: int) -> int:
        """The most of that many tokens that fill whole pages; all of them without pages."""
        return tokens // self.unit * self.unit if self.pages else tokens

    def reusable(self, length: int, held: int) -> bool:
        """Whether state held at `held` tokens can be gone on with from `length`.

        With a slot only where it is; without, at every whole page before as well.
        """
        if length == held:
            return length > 0
        return 0 < length < held and not self.per_sequence and self.whole(length) == length
