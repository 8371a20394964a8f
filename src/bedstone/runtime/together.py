"""Several sequences at once: prompts in, the tokens of each out.

Prompts go in one after another; then every step feeds the last token of each sequence that goes on,
a row of each in one call, or a round of each. What a sequence says does not depend on which others
there are.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from bedstone.errors import CallerError, CapacityError
from bedstone.runtime.choice import require_whole
from bedstone.runtime.executor import Executor
from bedstone.runtime.feeder import Feeder, pads
from bedstone.runtime.generate import Generator, not_finite
from bedstone.runtime.inputs import Feed
from bedstone.runtime.lease import Lease
from bedstone.runtime.rounds import draws, round_of, rows_of_rounds, taken
from bedstone.runtime.sampler import Drawing, drawing
from bedstone.spec.sampling import LIKELIEST, Sampling
from bedstone.verify.protocol import Protocol, Shape, protocol

Finish = Literal["stop", "length"]


@dataclass(slots=True)
class _Sequence:
    """One of them: its place among the prompts, and the tokens to be told.

    `length` is how many tokens its states hold once that which was told last goes in, `room` the
    most they can, of which an answer has `limit`.
    """

    index: int
    lease: Lease
    drawing: Drawing
    room: int
    limit: int
    length: int
    ready: Sequence[int]
    last: int = 0
    made: int = 0


class Together:
    """A session driven over several sequences, in lock step.

    The session's pages are shared out evenly. `finish` says why each ended, in the prompts' order.
    Each draws its tokens as `samplings` say, in that order; without them all take the likeliest.
    `rows` as of a generator.
    """

    def __init__(
        self,
        session: Executor,
        sequences: int,
        samplings: Sequence[Sampling] | None = None,
        rows: int | None = None,
    ) -> None:
        require_whole(session.manifest)
        self._samplings = samplings or [LIKELIEST] * sequences
        self._session = session
        self._protocol = read = protocol(session.verified)
        self._rows = rows_of_rounds(read, rows)
        shapes = [s for s in read.shapes if s.emits and s.rows in {1, None, self._rows}]
        padded = any(pads(session, read, shape) for shape in shapes)
        self._leases = _shared_out(session, read, sequences, padded=padded)
        self._shape_for(sequences, self._samplings, fits=True)
        self._feeder = Feeder(session, read, shapes, self._leases)
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
                yield from self._told(one, max_tokens, stop_ids)
            live = [one for one in live if self.finish[one.index] is None]
            if live:
                self._session.require_turn(turn)
                self._advance(live)

    def _told(
        self, one: _Sequence, max_tokens: int, stop_ids: Collection[int]
    ) -> Iterator[tuple[int, int]]:
        """Its tokens that are ready, up to its end."""
        for token in one.ready:
            if token in stop_ids:
                self.finish[one.index] = "stop"
                return
            yield one.index, token
            one.drawing.make((token,))
            one.made += 1
            one.last, one.length = token, one.length + 1
            if one.made == max_tokens or one.length > one.limit:
                self.finish[one.index] = "length"
                return

    def _begun(self, index: int, prompt: Sequence[int]) -> _Sequence:
        """A sequence after its prompt."""
        lease = self._leases[index]
        self.finish[index] = None
        sampling = self._samplings[index]
        generator = Generator(self._session, lease.pages, lease.slot, sampling, self._rows)
        ready = [generator.prefill(prompt), *generator.ready]
        drawn = drawing(self._session, self._protocol, sampling)
        drawn.read(prompt)
        room, limit = generator.room, generator.limit
        return _Sequence(index, lease, drawn, room, limit, generator.length, ready)

    def _advance(self, live: Sequence[_Sequence]) -> None:
        """One step of every sequence that goes on."""
        drawings = [one.drawing for one in live]
        fits = all(one.length - 1 + self._rows <= one.room for one in live)
        plain = all(each.chains for each in drawings)
        shape = self._shape_for(len(live), [d.sampling for d in drawings], fits=fits and plain)
        rows = shape.rows or 1
        feeds = [
            Feed([one.last] * rows, one.length - 1, one.lease, one.drawing.sampling) for one in live
        ]
        self._feeder.write_tables([shape], [one.lease for one in live])
        self._feeder.write(shape, feeds, drawings)
        for one, ready in zip(live, self._run(shape, len(live), feeds), strict=True):
            one.ready = ready

    def _run(self, shape: Shape, sequences: int, feeds: Sequence[Feed]) -> Sequence[Sequence[int]]:
        """The tokens that a step gives each of so many sequences."""
        longest, rows = max(feed.length for feed in feeds), shape.rows or 1
        call_vars = self._protocol.call_vars(sequences * rows, sequences, longest=longest)
        emits = shape.emits.buffer if shape.emits else None
        collect = [name for name in (emits, shape.count, shape.error) if name is not None]
        run = self._session.repeat(shape.program, 1, collect, **call_vars)
        found = dict(zip(collect, run, strict=True))
        if shape.error is not None and found[shape.error].any():
            where = f"of one of {sequences} sequences"
            raise not_finite(shape, found[shape.error].reshape(-1), where)
        tokens = found[emits or ""][0, :sequences]
        if shape.count is None:
            return [[token] for token in tokens.reshape(sequences, -1)[:, 0].tolist()]
        return taken(shape, tokens, found[shape.count][0, :sequences])

    def _shape_for(self, sequences: int, samplings: Sequence[Sampling], *, fits: bool) -> Shape:
        """The program of a step: a round where it `fits` and draws as asked for, else a row each.

        Raises `CallerError`: there is none of as many sequences.
        """
        step = self._protocol.step(sequences)
        found = round_of(self._protocol, sequences, self._rows)
        drawn = found is not None and all(draws(self._protocol, found, each) for each in samplings)
        shape = found if drawn and (fits or step is None) else step
        if shape is None or shape.emits is None:
            raise CallerError(
                f"no program takes a row of each of {sequences} sequences: compile with "
                f"`--sequences {sequences}`"
            )
        return shape


def _shared_out(
    session: Executor, protocol: Protocol, sequences: int, *, padded: bool
) -> list[Lease]:
    """Pages for each, as many for one as for another; slot 0 is nobody's.

    Where rows are nobody's the last page is, too.
    """
    capacity = session.capacity
    unit = protocol.page_tokens or capacity.unit
    each = (capacity.tokens // unit - padded) // sequences
    if (protocol.page_tables and not each) or sequences >= capacity.slots:
        raise CapacityError(
            f"{sequences} sequences: the session holds {capacity.tokens // unit} pages and "
            f"{capacity.slots - 1} slots"
        )
    return [
        Lease(tuple(range(each * i, each * i + each)), unit, slot=i + 1) for i in range(sequences)
    ]
