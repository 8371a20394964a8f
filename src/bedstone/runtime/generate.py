"""One sequence at a time: a prompt in, tokens out.

What to write and what to run is read off the protocol. Where the manifest has a *chain*, a program
that leaves its own next inputs on the device, a step is one replay and nothing enters from the
host; else a step feeds the last token back through the program that takes one row. A device that
works apart from the host is given a chain's next steps before the last one's token is read.
"""

from collections import abc, deque
from collections.abc import Collection, Iterator, Sequence
from operator import index
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CallerError, CapacityError, WeightError
from bedstone.runtime.domain import longest
from bedstone.runtime.executor import Executor, Run
from bedstone.runtime.inputs import Feed, call_inputs, input_roles, table_inputs
from bedstone.runtime.lease import whole_lease
from bedstone.runtime.sampler import drawing, knob_inputs
from bedstone.spec.frozen import Frozen
from bedstone.spec.sampling import LIKELIEST, Sampling
from bedstone.verify.protocol import Chain, Protocol, Shape, protocol


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
    tokens the states hold, `limit` the most they can, `finish` why the last `generate` ended.
    Tokens are drawn as `sampling` says, which the package needs a sampler for where it is not the
    likeliest: a `CallerError`.
    """

    def __init__(
        self,
        session: Executor,
        pages: Sequence[int] | None = None,
        slot: int = 1,
        sampling: Sampling = LIKELIEST,
    ) -> None:
        self._session = session
        self._protocol = protocol(session.verified)
        self._lease = whole_lease(self._protocol, session.capacity, pages, slot)
        self._chunk, self._step = _programs(self._protocol)
        self._roles = {
            s.program: input_roles(self._protocol, s, session.knobs)
            for s in (self._chunk, self._step)
        }
        self._sampling = sampling
        held = self._lease.tokens if self._lease.pages else None
        self.limit = longest(self._protocol, session.manifest, session.capacity, held)
        self._ahead = session.ahead if _rewinds(session) else 1
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
        for buffer, entries in table_inputs(self._protocol, self._lease):
            self._session.write(buffer, entries)
        for name, state in self._session.manifest.states.items():
            if state.bytes_per_seq:
                self._session.clear(
                    name, self._lease.slot * state.bytes_per_seq, state.bytes_per_seq
                )

    def prefill(self, tokens: Sequence[int], chunk: int | None = None) -> int:
        """Append a prompt to the sequence, `chunk` rows a call at most; the token that follows it.

        Raises `CapacityError`: the sequence would be longer than `limit`; nothing ran.
        """
        tokens = _ids(tokens)
        if self.length + len(tokens) > self.limit:
            already = f" after {self.length} others" if self.length else ""
            raise CapacityError(
                f"the prompt has {len(tokens)} tokens{already}, the context holds {self.limit}"
            )
        self._drawing.read(tokens)
        body = len(tokens) if self._chunk.emits else len(tokens) - 1
        rows = self._rows(chunk)
        for start in range(0, body, rows):
            self._feed(self._chunk, tokens[start : min(start + rows, body)])
        if body < len(tokens):
            self._feed(self._step, tokens[body:])
        self._made += 1
        last = self._required_last()
        self._drawing.make((last,))
        return last

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
            taken = self._advance(count - len(made))
            self._made += len(taken)
            made += taken
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
        for buffer, values in call_inputs(self._roles[shape.program], feed):
            self._session.write(buffer, values)
        for buffer, values in knob_inputs(self._session.knobs, (self._drawing,)):
            self._session.write(buffer, values)
        self._run(shape, 1, len(tokens))
        if not self._drawing.chains:
            return
        self._chain = next(iter(self._protocol.follow(shape, 1, self._session.reads)), None)

    def _advance(self, most: int) -> list[int]:
        """Take up to `most` steps, one at least."""
        chain = self._chain
        if chain is None:
            self._feed(self._step, [self._required_last()])
            made = [self._required_last()]
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
                    yield from self._advance(1)
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
        outputs = [program.emits.buffer if program.emits else None, program.error]
        collect = tuple(name for name in outputs if name is not None)
        longest = self.length + already + rows
        call_vars = self._protocol.call_vars(rows, 1, longest=longest)
        run = self._session.start(program.program, count, collect, **call_vars)
        return _Flight(program, run, collect, count, rows)

    def _land(self, flight: _Flight) -> list[int]:
        """Wait for runs; what they handed back each time."""
        # until they are over, what the device holds is not to be gone on from
        self._chain = None
        program = flight.program
        found = dict(zip(flight.collect, flight.run.wait(), strict=True))
        self._require_finite(program, found)
        self.length += flight.count * flight.rows
        if program.emits is None:
            self._last = None
            return []
        tokens = [int(row.flat[0]) for row in found[program.emits.buffer]]
        self._last = tokens[-1]
        return tokens

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
        most = self._protocol.rows.max if self._chunk.rows is None else self._chunk.rows
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


def _programs(protocol: Protocol) -> tuple[Shape, Shape]:
    """The program that takes a prompt and the one that takes one row; one may serve as both."""
    chunk, step = protocol.chunk, protocol.step()
    first, second = chunk or step, step or chunk
    if first is None or second is None or second.emits is None:
        raise CallerError("no program takes one sequence and hands a token back")
    return first, second


def _rewinds(session: Executor) -> bool:
    """Whether steps too many can be written over: what each token left lies apart from the rest."""
    return all(state.bytes_per_token for state in session.manifest.states.values())
