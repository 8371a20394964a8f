"""One sequence at a time: a prompt in, tokens out.

What to write and what to run is read off the protocol. Where the manifest has a *chain*, a program
that leaves its own next inputs on the device, a step is one replay and nothing enters from the
host; else a step feeds the last token back through the program that takes one row, or through a
speculative round, which may give several. A device that works apart from the host is given a
chain's next steps before the last one's token is read.
"""

from collections import abc, deque
from collections.abc import Collection, Iterator, Sequence
from operator import index
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CallerError, CapacityError, WeightError
from bedstone.runtime.choice import programs_of_one, require_whole, rewinds
from bedstone.runtime.domain import longest
from bedstone.runtime.executor import Executor, Run
from bedstone.runtime.feeder import Feeder, pads
from bedstone.runtime.inputs import Feed
from bedstone.runtime.lease import whole_lease
from bedstone.runtime.rounds import taken
from bedstone.runtime.sampler import drawing
from bedstone.spec.frozen import Frozen
from bedstone.spec.sampling import LIKELIEST, Sampling
from bedstone.verify.protocol import Chain, Shape, protocol


class _Flight(Frozen):
    """Runs of a program that have been started: which outputs they hand back, and over what."""

    program: Shape | Chain
    run: Run
    collect: tuple[str, ...]
    count: int
    rows: int


class Generator:
    """A session driven over one sequence.

    `pages` is the order in which the sequence takes pages of the session's pool; by default lowest
    first. `slot` is its own of the states that belong to a sequence whole. `length` is how many
    tokens the states hold, `limit` the most of an answer and `room` of rounds past its end,
    `finish` why the last `generate` ended. Tokens are drawn as `sampling` says, which the package
    needs a sampler for where it is not the likeliest: a `CallerError`. A step takes `rows`: those
    of the widest speculative round there is, or 1 for none.
    """

    def __init__(
        self,
        session: Executor,
        pages: Sequence[int] | None = None,
        slot: int = 1,
        sampling: Sampling = LIKELIEST,
        rows: int | None = None,
    ) -> None:
        require_whole(session.manifest)
        self._session = session
        self._protocol = protocol(session.verified)
        self._sampling = sampling
        self._programs = programs = programs_of_one(self._protocol, rows, sampling)
        if pages is None and any(pads(session, self._protocol, each) for each in programs.all):
            unit = self._protocol.page_tokens or session.capacity.unit
            pages = range(session.capacity.tokens // unit - 1)
        self._lease = whole_lease(self._protocol, session.capacity, pages, slot)
        self._feeder = Feeder(session, self._protocol, programs.all, [self._lease])
        held = self._lease.tokens if self._lease.pages else None
        self.room = longest(self._protocol, session.manifest, session.capacity, held)
        # a round near the end has rows past it; without one, a step of one row takes the last
        self.limit = self.room - (0 if programs.step else programs.rows - 1)
        self._rewinds = rewinds(session)
        self._ahead = session.ahead if self._rewinds else 1
        self.finish: Literal["stop", "length"] | None = None
        self.reset()

    def reset(self) -> None:
        """Begin a new sequence; one that another generator was at ends."""
        self._turn = self._session.begin()
        self.length = 0
        self._drawing = drawing(self._session, self._protocol, self._sampling)
        self._made = 0
        self._last: int | None = None
        self._chain: Chain | None = None
        self._ready: list[int] = []
        self._feeder.write_tables(self._programs.all, [self._lease])
        for name, state in self._session.manifest.states.items():
            if state.bytes_per_seq:
                self._session.clear(
                    name, self._lease.slot * state.bytes_per_seq, state.bytes_per_seq
                )

    def prefill(self, tokens: Sequence[int], chunk: int | None = None) -> int:
        """Append a prompt to the sequence, `chunk` rows a call at most; the token that follows it.

        Raises `CapacityError`: the sequence would be longer than `limit`; nothing ran.
        Raises `CallerError`: its states are past the tokens that were taken of a round.
        """
        tokens = _ids(tokens)
        self._let_go()
        if self.length + len(tokens) > self.limit:
            already = f" after {self.length} others" if self.length else ""
            raise CapacityError(
                f"the prompt has {len(tokens)} tokens{already}, the context holds {self.limit}"
            )
        self._drawing.read(tokens)
        body = len(tokens) if self._programs.chunk.emits else len(tokens) - 1
        rows = self._rows(chunk)
        for start in range(0, body, rows):
            self._feed(self._programs.chunk, tokens[start : min(start + rows, body)])
        if body < len(tokens):
            self._last = tokens[body]
            self._step_from_host(1)
        self._made += 1
        last = self._required_last()
        self._drawing.make((last,))
        return last

    @property
    def ready(self) -> tuple[int, ...]:
        """The tokens that a round gave and nobody has taken: the states hold all but the last."""
        return tuple(self._ready)

    def step(self) -> int:
        """Feed the last token back; the token that follows it."""
        return self.advance(1)[0]

    def advance(self, count: int) -> list[int]:
        """Take `count` steps, all of them in one replay where a chain allows it.

        Raises `CapacityError`: the context has no room for as many.
        Raises `WeightError`: a step's logits were not finite.
        """
        self._required_last()
        if self.length + count > self.limit:
            raise CapacityError(
                f"{count} more tokens after {self.length}: the context holds {self.limit}"
            )
        made: list[int] = []
        while len(made) < count:
            some = self._advance(count - len(made), count - len(made))
            self._made += len(some)
            made += some
        return made

    def generate(
        self, tokens: Sequence[int], max_tokens: int, stop_ids: Collection[int] = ()
    ) -> Iterator[int]:
        """Append a prompt, then yield what follows, up to a stop token, which is not yielded."""
        self.finish = None
        if max_tokens < 1:
            raise CallerError(f"`max_tokens` is {max_tokens}: expected 1 at least")
        made = self.prefill(tokens)
        following = self._follow(min(max_tokens - 1, self.limit - self.length))
        try:
            token: int | None = made
            while token is not None:
                if token in stop_ids:
                    self.finish = "stop"
                    return
                yield token
                token = next(following, None)
            self.finish = "length"
        finally:
            following.close()

    def _feed(self, shape: Shape, tokens: Sequence[int]) -> None:
        """Run one call that takes `tokens` from the host."""
        self._session.require_turn(self._turn)
        feed = Feed(tokens, self.length, self._lease, self._sampling)
        self._feeder.write(shape, [feed], [self._drawing])
        self._run(shape, 1, len(tokens))
        # rounds make more of a step than a chain of single rows
        if self._drawing.chains and self._programs.round is None:
            self._chain = next(iter(self._protocol.follow(shape, 1, self._session.reads)), None)

    def _step_from_host(self, wanted: int) -> int:
        """Feed the last token back, of an answer that wants so many more; the one that follows."""
        if not self._ready:
            shape = self._round_for(wanted)
            if shape is None and self._programs.step is not None:
                self._feed(self._programs.step, [self._required_last()])
                return self._required_last()
            self._play(shape)
        self.length += 1
        self._last = self._ready.pop(0)
        return self._last

    def _round_for(self, wanted: int) -> Shape | None:
        """The round to take, None where a row at a time is as well.

        States that are of one length only are not to be past the end of an answer.
        """
        programs, rows = self._programs, self._programs.rows
        fits = self.length + rows <= self.room and (self._rewinds or wanted >= rows)
        return programs.round if not programs.step or (fits and self._drawing.chains) else None

    def _play(self, shape: Shape | None) -> None:
        """Have the tokens of a round ready."""
        if shape is None or shape.rows is None or shape.emits is None or shape.count is None:
            raise AssertionError("a round has rows, tokens and their count")
        self._session.require_turn(self._turn)
        rows = [self._required_last()] * shape.rows
        feed = Feed(rows, self.length, self._lease, self._sampling)
        self._feeder.write(shape, [feed], [self._drawing])
        found = self._found(self._start(shape, 1, shape.rows))
        tokens, counts = found[shape.emits.buffer][0, :1], found[shape.count][0, :1]
        self._ready = [*taken(shape, tokens, counts)[0]]

    def _let_go(self) -> None:
        """Forget the tokens that nobody has taken: what comes next is written over them.

        Raises `CallerError`: the states are past them, and hold one length only.
        """
        if len(self._ready) and not self._rewinds:
            raise CallerError(
                f"the states are {len(self._ready)} tokens past those that were taken: begin anew"
            )
        self._ready = []

    def _advance(self, most: int, wanted: int) -> list[int]:
        """Take up to `most` steps, one at least, of an answer that wants so many more tokens."""
        chain = self._chain
        if chain is None:
            made = [self._step_from_host(wanted)]
            self._drawing.make(made)
            return made
        tokens = self._run(chain, self._burst(chain, most), 1)
        self._chain = chain
        return tokens

    def _follow(self, most: int) -> abc.Generator[int, None, None]:
        """Take `most` steps, each a token, those of a chain started ahead of being read.

        Where a caller stops early the device has gone on; the steps it took are forgotten, and
        what comes next writes over them.
        """
        flights: deque[_Flight] = deque()
        started = 0
        try:
            while started < most or flights:
                chain = self._chain
                if chain is None:
                    yield from self._advance(1, most - started)
                    self._made += 1
                    started += 1
                    continue
                while started < most and len(flights) < self._burst(chain, self._ahead):
                    flights.append(self._start(chain, 1, 1, len(flights)))
                    started += 1
                tokens = self._land(flights.popleft())
                self._made += 1
                self._chain = chain
                yield from tokens
        finally:
            if flights:
                self._chain = None

    def _run(self, program: Shape | Chain, count: int, rows: int) -> list[int]:
        """Run a program `count` times over `rows` rows each; what it handed back each time."""
        return self._land(self._start(program, count, rows))

    def _start(self, program: Shape | Chain, count: int, rows: int, already: int = 0) -> _Flight:
        """Start runs, `already` rows after those that have been read."""
        self._session.require_turn(self._turn)
        emits = program.emits.buffer if program.emits else None
        outputs = [emits, program.count, program.error]
        collect = tuple(name for name in outputs if name is not None)
        longest = self.length + already + rows
        call_vars = self._protocol.call_vars(rows, 1, longest=longest)
        run = self._session.start(program.program, count, collect, **call_vars)
        return _Flight(program, run, collect, count, rows)

    def _land(self, flight: _Flight) -> list[int]:
        """Wait for runs; what they handed back each time."""
        found, program = self._found(flight), flight.program
        self.length += flight.count * flight.rows
        if program.emits is None:
            self._last = None
            return []
        tokens = [int(row.flat[0]) for row in found[program.emits.buffer]]
        self._last = tokens[-1]
        return tokens

    def _found(self, flight: _Flight) -> dict[str, NDArray[np.generic]]:
        """What each output of runs held, once they are over."""
        # until then, what the device holds is not to be gone on from
        self._chain = None
        found = dict(zip(flight.collect, flight.run.wait(), strict=True))
        self._require_finite(flight.program, found)
        return found

    def _require_finite(
        self, program: Shape | Chain, found: dict[str, NDArray[np.generic]]
    ) -> None:
        if program.error is None:
            return
        flags = found[program.error].reshape(-1)
        if flags.any():
            first = self._made + int(np.flatnonzero(flags)[0])
            raise not_finite(program, flags, f"at step {first}")

    def _burst(self, chain: Chain, count: int) -> int:
        """How many steps one replay may take: one, where a step's own length is among its vars."""
        context = self._protocol.context
        reads = self._session.reads(chain.program)
        return 1 if context is not None and context.name in reads else count

    def _rows(self, chunk: int | None) -> int:
        most = (
            self._protocol.rows.max
            if self._programs.chunk.rows is None
            else self._programs.chunk.rows
        )
        if chunk is not None and not 1 <= chunk <= most:
            raise CallerError(f"`chunk` is {chunk}: expected 1 to {most} rows a call")
        return most if chunk is None else chunk

    def _required_last(self) -> int:
        if self._last is None:
            raise CallerError("no token to go on from: prefill a prompt first")
        return self._last


def not_finite(program: Shape | Chain, flags: NDArray[np.generic], where: str) -> WeightError:
    """The error of a program whose error flags [n] are not all 0.

    Weights are to blame that hold NaN or infinity, or that make activations overflow.
    """
    return WeightError(
        f"non-finite logits {where}: program `{program.program}` set `{program.error}` to "
        f"{flags[flags != 0][0]}; weights hold NaN or infinity, or activations overflow"
    )


def _ids(tokens: Sequence[int]) -> list[int]:
    """A prompt as plain integers, whatever kind of sequence it came as.

    Raises `CallerError`: it is empty, or holds something else.
    """
    try:
        ids = [index(token) for token in tokens]
    except TypeError as error:
        raise CallerError(f"a prompt is a sequence of token ids: {error}") from error
    if not ids:
        raise CallerError("the prompt is empty: expected one token at least")
    return ids
