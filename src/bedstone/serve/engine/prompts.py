"""Which prompts go on, through which programs, and when they are in."""

from collections.abc import Sequence as Items

from bedstone.serve.engine.abilities import Abilities
from bedstone.serve.engine.calls import Flight
from bedstone.serve.engine.holdings import Holdings
from bedstone.serve.engine.options import Options
from bedstone.serve.engine.pieces import Pieces
from bedstone.serve.engine.running import Running
from bedstone.serve.engine.schedule import Prompt, plan_calls, plan_chunks
from bedstone.serve.engine.sequence import Sequence
from bedstone.verify.protocol import Shape


class Prompts:
    """The prompts of those that run, piece by piece."""

    def __init__(
        self,
        able: Abilities,
        holdings: Holdings,
        running: Running,
        pieces: Pieces,
        options: Options,
    ) -> None:
        self._able = able
        self._running = running
        self._pieces = pieces
        self._chunk, self._budget = min(able.rows, options.chunk), options.budget
        self._per_sequence = holdings.geometry.per_sequence
        self._keeps_all_but_last = options.reuse and self._per_sequence
        self._feeds_all, self._draws = able.feeds_all, able.draws

    def start(self, turn: int) -> list[Flight]:
        """Start the pieces that go in now."""
        running = self._running
        sequences = list(running.prompts)
        answering = len(running) > len(sequences)
        chunk = min(self._chunk, self._budget) if answering else self._chunk
        prompts = [Prompt(each.fed, self._left(each)) for each in sequences]
        plan = plan_chunks(prompts, turn, chunk, self._budget)
        pieces = [(sequences[at], count) for at, count in plan]
        most = self._able.feeders[-1].groups
        if most == 1 or len(pieces) == 1:
            return [self._call([piece]) for piece in pieces]
        alone = {at for at, piece in enumerate(pieces) if self._is_alone(*piece)}
        counts = [count for _, count in pieces]
        calls = plan_calls(counts, alone, self._able.call_rows, most)
        return [self._call([pieces[at] for at in call]) for call in calls]

    def went_in(self, sequence: Sequence, count: int) -> bool:
        """So many tokens more are in; whether that is kept for others.

        With a slot all but the token that must run are.
        """
        sequence.fed += count
        if self._per_sequence:
            done = sequence.fed == sequence.prompt - 1
        else:
            done = sequence.left == (not self._feeds_all)
        if done:
            self._running.keep(sequence)
        return done

    def seat(self, sequence: Sequence) -> None:
        """A sequence may take a row once all but its last token are in."""
        past = sequence.fed >= sequence.prompt or not self._feeds_all
        if sequence.left == 1 and past and not self._is_tried(sequence):
            self._running.is_in(sequence)

    def _left(self, sequence: Sequence) -> int:
        """Tokens of a prompt that go in before there is something to be done on the host."""
        before = sequence.prompt - 1 - sequence.fed
        if before > 0 and self._keeps_all_but_last:
            return before
        return sequence.left if self._feeds_all else max(1, sequence.left - 1)

    def _is_tried(self, sequence: Sequence) -> bool:
        """Whether a sequence is to make a token alone before it is stepped with others."""
        return sequence.suspect and not self._feeds_all

    def _is_alone(self, sequence: Sequence, count: int) -> bool:
        """Whether a piece needs a call of its own: for how its token is drawn, or whose fault."""
        drawn = sequence.left == count and self._draws
        return sequence.suspect or drawn

    def _call(self, pieces: Items[tuple[Sequence, int]]) -> Flight:
        sequence, count = pieces[0]
        last = sequence.left == count
        tried = last and self._is_tried(sequence)
        return self._pieces.start(self._program(len(pieces), tried=tried), pieces)

    def _program(self, sequences: int, *, tried: bool) -> Shape:
        feeders = self._able.steps or self._able.rounds if tried else self._able.feeders
        return next(shape for shape in feeders if shape.groups >= sequences)
