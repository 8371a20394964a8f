"""Steps that are speculative rounds: what goes in, and what of what comes back is taken."""

from collections.abc import Sequence as Items

import numpy as np

from bedstone.runtime.rounds import draws, taken
from bedstone.serve.engine.abilities import Abilities
from bedstone.serve.engine.answers import Over
from bedstone.serve.engine.calls import Calls, Flight, Found, Sizes
from bedstone.serve.engine.ledger import Ledger
from bedstone.serve.engine.rows import POSITION, Rows
from bedstone.serve.engine.sequence import Sequence
from bedstone.serve.requests import Reason
from bedstone.spec.frozen import Frozen
from bedstone.verify.protocol import Shape


class Answer(Frozen):
    """What a sequence takes of a round: `tokens` to be told, and whether it is over then.

    `counted` are those and a stop token; `past` says that the states are further than that.
    """

    sequence: Sequence
    tokens: tuple[int, ...]
    counted: int
    last: int
    reason: Reason | None
    past: bool


def answer_of(sequence: Sequence, made: Items[int]) -> Answer:
    """What a sequence takes of the tokens that a round made: up to its end, in order."""
    room = sequence.end - len(sequence.tokens)
    stop = next((at for at, token in enumerate(made) if token in sequence.stops), len(made))
    kept = min(stop, room)
    # a stop token right behind the last token of an answer is not looked at
    stopped = stop < min(len(made), room)
    counted = kept + stopped
    reason: Reason | None = "stop" if stopped else "length" if kept == room else None
    return Answer(
        sequence, tuple(made[:kept]), counted, made[counted - 1], reason, counted < len(made)
    )


def made_by(flight: Flight, found: Found) -> Items[Items[int]]:
    """The tokens that a call made for each of its sequences: none, one, or some of a round.

    Raises `DeviceError`: the program counts tokens that there are not.
    """
    program, count = flight.program, len(flight.sequences)
    if program.emits is None:
        return [()] * count
    made = found[program.emits.buffer].reshape(-1)[: count * program.emits.width]
    rows = made.reshape(count, program.emits.width)
    if program.count is None:
        return [(token,) for token in rows[:, 0].tolist()]
    return taken(program, rows, found[program.count][0, :count])


class Rounds:
    """The rounds of an engine, of `rows` rows a sequence; 1 where it has none.

    `played` counts those of all sequences.
    """

    def __init__(self, able: Abilities, calls: Calls, rows: Rows, ledger: Ledger) -> None:
        self.rows = able.stride
        self.played = 0
        self._accepted = np.zeros(self.rows - 1, np.int64)
        self._able = able
        self._calls = calls
        self._rows = rows
        self._ledger = ledger
        self._of = -1
        self._all_ride = False

    @property
    def drafted(self) -> int:
        """How many tokens were drafted."""
        return self.played * (self.rows - 1)

    @property
    def accepted(self) -> tuple[int, ...]:
        """In how many rounds the draft at each place was right."""
        return tuple(self._accepted.tolist())

    def next(self) -> Shape | None:
        """The program of the next step, None where that takes a row of each sequence.

        What needs the host between its tokens, or is drawn in a way that rounds do not know, has
        all rows go in one at a time.
        """
        rows = self._rows
        if rows.slow:
            return None
        if self._of != rows.edition:
            self._of, self._all_ride = rows.edition, all(map(self._rides, rows.sequences))
        return self._able.round(len(rows)) if self._all_ride else None

    def start(self, shape: Shape) -> Flight:
        """Start a round of every row."""
        rows, each = self._rows, self.rows
        count = len(rows)
        width = self._able.width(shape, count)
        tokens = np.zeros((width, each), np.int32)
        tokens[:count] = rows.tokens[:count, None]
        at = np.zeros((width, each), np.int32)
        at[:count] = rows.next()[POSITION, :count, None]
        at += np.arange(each, dtype=np.int32)
        slots, lengths = rows.slots(at), at[:, -1:] + 1
        calls, size = self._calls, width * each
        calls.lay(Sizes(shape.program, size, width, count * each))
        calls.flush(width)
        fed = {"token": tokens, "position": at, "slot": slots, "seq_len": lengths}
        for target, role in calls.inputs_of(shape.program):
            values = fed.get(role.fill)
            if values is not None:
                # where rows go was checked when they came and grew
                target.put(values[:, 0] if role.over == "groups" else values.reshape(-1))
        given = calls.given(size, width, rows.longest() + each - 1)
        return calls.start(shape, rows.all, (), (), given)

    def needed(self, left: int) -> int:
        """How many rounds so many tokens take at least."""
        return -(-left // self.rows)

    def take(self, flight: Flight, found: Found) -> list[Over]:
        """Each sequence that goes on has its tokens of a round; which are over then.

        Raises `DeviceError`: the program counts tokens that there are not.
        """
        made = made_by(flight, found)
        counts = [len(tokens) for tokens in made]
        self.played += len(counts)
        self._accepted += np.greater.outer(counts, np.arange(1, self.rows)).sum(axis=0)
        # of those that rows had before, their tokens count
        self._rows.settle()
        pairs = zip(flight.sequences, made, strict=True)
        answers = [answer_of(each, tokens) for each, tokens in pairs if not each.over]
        for each in answers:
            self._rows.jump(each.sequence, each.last, each.counted)
        return [over for each in answers if (over := self._tell(each)) is not None]

    def begin(self, sequence: Sequence, made: Items[int]) -> Over | None:
        """A sequence without a row has its first tokens: whether it is over then."""
        answer = answer_of(sequence, made)
        # its anchor has been counted with the prompt
        sequence.fed += answer.counted - 1
        return self._tell(answer)

    def _tell(self, answer: Answer) -> Over | None:
        sequence, tokens = answer.sequence, answer.tokens
        sequence.tokens.extend(tokens)
        sequence.past = answer.past
        self._ledger.tell_each([sequence.id] * len(tokens), tokens)
        return None if answer.reason is None else Over(sequence, answer.reason)

    def _rides(self, sequence: Sequence) -> bool:
        able, sampling = self._able, sequence.request.sampling
        return all(draws(able.protocol, shape, sampling) for shape in able.rounds)
