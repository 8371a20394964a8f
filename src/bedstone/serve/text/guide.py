"""What answers are held to, as data, and the constraints made of it."""

from collections.abc import Collection, Sequence
from functools import cached_property

from bedstone.checkpoint.tokenizer import Tokenizer
from bedstone.serve.link.link import Guide
from bedstone.serve.requests import Constraint
from bedstone.serve.text.constraint import Forced, Grammars
from bedstone.serve.text.thought import BoundedThought


class Guides:
    """Makes the constraints of guides over one vocabulary of `vocab` ids.

    `keep` are the special tokens that a grammar may allow. Safe to call from several threads.
    """

    def __init__(self, tokenizer: Tokenizer, vocab: int, keep: Collection[int]) -> None:
        self._tokenizer = tokenizer
        self._vocab = vocab
        self._keep = keep

    @cached_property
    def grammars(self) -> Grammars:
        """Grammars over the vocabulary; made when one is first asked for."""
        return Grammars(self._tokenizer, self._vocab, self._tokenizer.eos, self._keep)

    def make(self, guide: Guide, forced: Sequence[int], count: int) -> Sequence[Constraint | None]:
        """A constraint for each of so many sequences at their start, None where nothing holds them.

        Tokens that are `forced` leave no choice.

        Raises `CallerError`: the grammar is none, or too large to work with.
        """
        if forced:
            return [Forced(forced, self._vocab) for _ in range(count)]
        held: Sequence[Constraint | None] = [None] * count
        if guide.grammar is not None:
            held = self.grammars.compile(guide.grammar, count)
        if guide.thought is None:
            return held
        return [self._bounded(each, guide.thought, thinking=guide.thinking) for each in held]

    def _bounded(self, inner: Constraint | None, most: int, *, thinking: bool) -> BoundedThought:
        return BoundedThought(inner, self._tokenizer, self._vocab, most, thinking=thinking)
