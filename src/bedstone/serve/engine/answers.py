"""Tokens as they come: what is told of them, what they change, and which answers they end."""

from collections.abc import Sequence as Items
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bedstone.serve.engine.ledger import Ledger
from bedstone.serve.engine.rows import Rows
from bedstone.serve.engine.sequence import Sequence
from bedstone.serve.engine.settings import Likely, Settings
from bedstone.serve.requests import Reason


class Over(NamedTuple):
    """An answer that a token ends, and why."""

    sequence: Sequence
    reason: Reason
    message: str = ""


class Answers:
    """The answers that grow by a token a step. `said` is how likely tokens were, or nothing."""

    def __init__(self, rows: Rows, settings: Settings, ledger: Ledger) -> None:
        self._rows = rows
        self._settings = settings
        self._ledger = ledger

    def take(self, made: NDArray[np.generic], tokens: list[int], said: Items[Likely]) -> list[Over]:
        """Each row has its next token: those made, and the same as `tokens`.

        What costs something for each row is done of all at once; most steps end nobody.
        """
        rows, needs = self._rows, self._rows.needs()
        bound = [(each, tokens[each.row]) for each in rows.bound]
        rows.set_aside(made, tokens)
        self._settings.make(made, tokens)
        over: list[Over] = []
        if needs.stops.isdisjoint(tokens):
            self._ledger.tell_each(needs.names, tokens, *zip(*said, strict=True))
        else:
            over += self._stop(tokens, said)
        ended = {each.sequence.id for each in over}
        limits = (self.restrict(each, token) for each, token in bound if each.id not in ended)
        over += [each for each in limits if each is not None]
        ended |= {each.sequence.id for each in over}
        return over + [Over(s, "length") for s in rows.complete() if s.id not in ended]

    def begin(self, sequence: Sequence, token: int, said: Items[Likely]) -> Over | None:
        """A prompt has its first token."""
        if token in sequence.stops:
            return Over(sequence, "stop")
        sequence.tokens.append(token)
        self._ledger.tell_each((sequence.id,), (token,), *zip(*said, strict=True))
        over = self.restrict(sequence, token)
        if over is None and len(sequence.tokens) == sequence.end:
            over = Over(sequence, "length")
        return over

    def restrict(self, sequence: Sequence, token: int | None) -> Over | None:
        """What may follow the token of a sequence with a constraint, or its prompt."""
        constraint = sequence.request.constraint
        if constraint is None:
            return None
        try:
            if token is not None and not constraint.accept(token):
                return Over(sequence, "stop")
            sequence.allowed = constraint.allowed()
        except Exception as error:  # noqa: BLE001 - the caller's own; others are not to suffer
            return Over(sequence, "error", f"its constraint failed: {error}")
        self._settings.restrict(sequence)
        return None

    def _stop(self, tokens: list[int], said: Items[Likely]) -> list[Over]:
        """Tell the tokens of each row but those that end it."""
        every = self._rows.all
        stop = [token in each.stops for each, token in zip(every, tokens, strict=True)]
        names = [each.id for each, ends in zip(every, stop, strict=True) if not ends]
        going = [token for token, ends in zip(tokens, stop, strict=True) if not ends]
        likely = [how for how, ends in zip(said, stop, strict=True) if not ends] if said else ()
        self._ledger.tell_each(names, going, *zip(*likely, strict=True))
        over = [Over(each, "stop") for each, ends in zip(every, stop, strict=True) if ends]
        for each in over:
            self._rows.take_back(each.sequence)
        return over
