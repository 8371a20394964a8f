"""A bound on what a model thinks before it answers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bedstone.checkpoint.tokenizer import Tokenizer
from bedstone.serve.requests import Constraint
from bedstone.serve.text.constraint import WORD, set_bits
from bedstone.serve.text.reasoning import CLOSE, OPEN

END = f"\n{CLOSE}\n\n"
"""What a thought that is too long is ended with."""


class BoundedThought:
    """A `Constraint` that ends a thought after `most` tokens; else it allows what `inner` does.

    `thinking` where the prompt has opened the thought; an answer that opens none is left alone.
    """

    def __init__(
        self,
        inner: Constraint | None,
        tokenizer: Tokenizer,
        vocab: int,
        most: int,
        *,
        thinking: bool,
    ) -> None:
        self._inner = inner
        self._tokenizer = tokenizer
        self._every = _every(min(vocab, tokenizer.size), vocab)
        self._left = most
        self._text = OPEN.encode() if thinking else b""
        self._thinking: bool | None = thinking or None
        self._forced: Sequence[int] = ()

    def allowed(self) -> NDArray[np.uint32]:
        """What may come next: of a thought that is too long, its end."""
        if self._forced:
            words = np.zeros_like(self._every)
            set_bits(words, self._forced[:1])
            return words
        return self._every if self._inner is None else self._inner.allowed()

    def accept(self, token: int) -> bool:
        """Go on by a token; whether anything may follow."""
        if self._forced:
            self._forced = self._forced[1:]
        elif self._thinking is not False:
            self._think(token)
        return self._inner is None or self._inner.accept(token)

    def _think(self, token: int) -> None:
        self._text += self._tokenizer.piece(token)
        opening = OPEN.encode()
        if self._thinking is None:
            self._text = self._text.lstrip()
            if self._text.startswith(opening):
                self._thinking = True
            elif not opening.startswith(self._text):
                self._thinking = False
            return
        self._left -= 1
        if CLOSE.encode() in self._text[len(opening) :]:
            self._thinking = False
        elif self._left <= 0:
            self._thinking = False
            self._forced = self._tokenizer.encode(END, special=True)
        # no more than a marker of what was thought is looked at again
        self._text = opening + self._text[len(opening) :][-len(CLOSE) :]


def _every(known: int, vocab: int) -> NDArray[np.uint32]:
    """The mask of every token that is one."""
    bits = np.zeros(-(-vocab // WORD) * WORD, np.uint8)
    bits[:known] = 1
    return np.packbits(bits, bitorder="little").view(np.uint32)
