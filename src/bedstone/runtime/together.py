"""Several sequences at once: prompts in, the tokens of each out.

Prompts go in one after another; then every step feeds the last token of each sequence that goes on,
a row of each in one call. What a sequence says does not depend on which others there are.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from bedstone.errors import CallerError, CapacityError
from bedstone.runtime.executor import Executor
from bedstone.runtime.generate import Generator, not_finite
from bedstone.runtime.inputs import Feed, call_inputs, input_roles, table_inputs
from bedstone.runtime.lease import Lease
from bedstone.runtime.sampler import Drawing, drawing, knob_inputs
from bedstone.spec.sampling import LIKELIEST, Sampling
from bedstone.verify.protocol import Protocol, Shape, protocol

Finish = Literal["stop", "length"]


@dataclass(slots=True)
class _Sequence:
    """One of them: its place among the prompts, what its states hold, the token that comes next."""

    index: int
    lease: Lease
    drawing: Drawing
    limit: int
    length: int
    last: int
    made: int = 1


class Together:
    """A session driven over several sequences, in lock step.

    The session's pages are shared out evenly. `finish` says why each ended, in the prompts' order.
    Each draws its tokens as `samplings` say, in that order; without them all take the likeliest.
    """

    def __init__(
        self, session: Executor, sequences: int, samplings: Sequence[Sampling] | None = None
    ) -> None:
        self._samplings = samplings or [LIKELIEST] * sequences
        self._session = session
        self._protocol = protocol(session.verified)
        self._leases = _shared_out(session, self._protocol, sequences)
        _step(self._protocol, sequences)
        self.finish: list[Finish | None] = [None] * sequences

    def generate(
        self, prompts: Sequence[Sequence[int]], max_tokens: int, stop_ids: Collection[int] = ()
    ) -> Iterator[tuple[int, int]]:
        """Yield which prompt and what follows it, token by token, up to its stop token.

        Raises `CapacityError`: a prompt is longer than its pages hold.
        Raises `WeightError`: a step's logits were not finite.
        """
        if max_tokens < 1 or len(prompts) != len(self._leases):
            raise CallerError(
                f"{len(prompts)} prompts of `max_tokens` {max_tokens}: expected "
                f"{len(self._leases)} prompts and 1 token at least"
            )
        live = [self._begun(index, prompt) for index, prompt in enumerate(prompts)]
        turn = self._session.begin()
        while live:
            for one in live:
                if one.last in stop_ids:
                    self.finish[one.index] = "stop"
                    continue
                yield one.index, one.last
                if one.made == max_tokens or one.length == one.limit:
                    self.finish[one.index] = "length"
            live = [one for one in live if self.finish[one.index] is None]
            if live:
                self._session.require_turn(turn)
                self._advance(live)

    def _begun(self, index: int, prompt: Sequence[int]) -> _Sequence:
        """A sequence after its prompt."""
        lease = self._leases[index]
        self.finish[index] = None
        sampling = self._samplings[index]
        generator = Generator(self._session, lease.pages, lease.slot, sampling)
        first = generator.prefill(prompt)
        drawn = drawing(self._session, self._protocol, sampling)
        drawn.read(prompt)
        drawn.make((first,))
        return _Sequence(index, lease, drawn, generator.limit, generator.length, first)

    def _advance(self, live: Sequence[_Sequence]) -> None:
        """One step of every sequence that goes on."""
        shape, emits = _step(self._protocol, len(live))
        leases = [one.lease for one in live]
        feeds = [Feed([one.last], one.length, one.lease, one.drawing.sampling) for one in live]
        for buffer, entries in table_inputs(self._protocol, *leases):
            self._session.write(buffer, entries)
        roles, knobs = input_roles(self._protocol, shape, self._session.knobs), self._session.knobs
        for buffer, values in call_inputs(roles, *feeds):
            self._session.write(buffer, values)
        for buffer, values in knob_inputs(knobs, [one.drawing for one in live]):
            self._session.write(buffer, values)
        longest = max(feed.length for feed in feeds)
        call_vars = self._protocol.call_vars(len(live), len(live), longest=longest)
        collect = (emits,) if shape.error is None else (emits, shape.error)
        tokens, *errors = self._session.repeat(shape.program, 1, collect, **call_vars)
        if errors and errors[0].any():
            raise not_finite(shape, errors[0], f"of one of {len(live)} sequences")
        for one, row in zip(live, tokens[0], strict=False):
            one.last = int(row.flat[0])
            one.drawing.make((one.last,))
            one.length += 1
            one.made += 1


def _step(protocol: Protocol, sequences: int) -> tuple[Shape, str]:
    """The program that takes a row of each, and the output that holds their tokens."""
    shape = protocol.step(sequences)
    if shape is None or shape.emits is None:
        raise CallerError(
            f"no program takes a row of each of {sequences} sequences: compile with "
            f"`--sequences {sequences}`"
        )
    return shape, shape.emits.buffer


def _shared_out(session: Executor, protocol: Protocol, sequences: int) -> list[Lease]:
    """Pages for each, as many for one as for another; slot 0 is nobody's."""
    capacity = session.capacity
    unit = protocol.page_tokens or capacity.unit
    each = capacity.tokens // unit // sequences
    if (protocol.page_tables and not each) or sequences >= capacity.slots:
        raise CapacityError(
            f"{sequences} sequences: the session holds {capacity.tokens // unit} pages and "
            f"{capacity.slots - 1} slots"
        )
    return [
        Lease(tuple(range(each * i, each * i + each)), unit, slot=i + 1) for i in range(sequences)
    ]
