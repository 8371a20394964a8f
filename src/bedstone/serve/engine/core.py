"""An engine without a thread: requests in, a turn at a time, events out.

A turn ends what is over time or no longer wanted, lets in who waits, takes prompts on by a piece
and every sequence that is being answered by a token. Steps that need nothing from the host follow
each other on the device, several at once.
"""

import math
from collections import deque
from collections.abc import Callable
from collections.abc import Sequence as Items
from dataclasses import replace
from time import monotonic, thread_time

from bedstone.runtime.executor import Executor
from bedstone.serve.engine.abilities import read_abilities
from bedstone.serve.engine.answers import Answers
from bedstone.serve.engine.calls import Calls, Flight
from bedstone.serve.engine.holdings import Holdings
from bedstone.serve.engine.intake import begun, edits_of, require_possible
from bedstone.serve.engine.ledger import Ledger
from bedstone.serve.engine.options import Options
from bedstone.serve.engine.pieces import Pieces
from bedstone.serve.engine.prompts import Prompts
from bedstone.serve.engine.queue import Queue
from bedstone.serve.engine.rounds import Rounds, made_by
from bedstone.serve.engine.rows import Rows
from bedstone.serve.engine.running import Running
from bedstone.serve.engine.sequence import Sequence
from bedstone.serve.engine.settings import Likely
from bedstone.serve.requests import Event, Limits, Reason, Request, Stats
from bedstone.verify.protocol import Chain, protocol

_MOST_STRIKES = 3


class Core:
    """The requests of a session and what they hold; one thread drives it."""

    def __init__(
        self,
        session: Executor,
        options: Options,
        clock: Callable[[], float] = monotonic,
        cpu: Callable[[], float] = thread_time,
    ) -> None:
        able = read_abilities(session, protocol(session.verified), session.knobs, options.rows)
        self._options = options
        self._ledger = Ledger()
        self._holdings = Holdings(session, able, reuse=options.reuse, host_bytes=options.host_bytes)
        past = able.stride - 1
        able = replace(able, context=self._holdings.longest(able.context + past) - past)
        self._able = able
        self._most = min(able.sequences, options.sequences or able.sequences)
        unit, pad = self._holdings.unit, self._holdings.pad_page
        paged = self._holdings.geometry.row > 0
        self._rows = Rows(able.sequences, unit, pad, paged=paged)
        self._calls = Calls(session, able, self._rows, unit, cpu)
        if able.pads:
            self._calls.pad_with(pad)
        self._session, self._own = session, session.begin()
        self._ahead = max(1, session.ahead)
        self._queue = Queue(self._holdings, options.admission, clock)
        self._answers = Answers(self._rows, self._calls.settings, self._ledger)
        self._rounds = Rounds(able, self._calls, self._rows, self._ledger)
        self._running = Running(self._holdings, self._rows, self._calls)
        self._piece_calls = Pieces(self._calls, able, unit)
        self._prompts = Prompts(able, self._holdings, self._running, self._piece_calls, options)
        self._flights: deque[Flight] = deque()
        self._pieces: deque[Flight] = deque()
        self._chain: Chain | None = None
        self._chained = -1
        self._restless = False
        self._next_deadline = math.inf
        self._orders = self._turns = 0
        self._steps = self._preempted = 0
        self._clock, self._cpu = clock, cpu
        self._host_seconds = self._step_seconds = 0.0
        self.limits = Limits(able.context, able.vocab, self._most, options.queue, able.missing)

    @property
    def busy(self) -> bool:
        """Whether any request is open."""
        return bool(self._ledger.open)

    def require_possible(self, request: Request) -> None:
        """Accept a request that can be answered; any thread may ask.

        Raises `CallerError`: it cannot.
        """
        require_possible(self._able, request)

    def submit(self, request: Request) -> None:
        """Take a request that can be answered, of a name that no open one has."""
        sequence = begun(self._able, request, self._orders)
        self._orders += 1
        if request.deadline is not None:
            self._next_deadline = min(self._next_deadline, request.deadline)
        self._ledger.begin(sequence)
        self._queue.put(sequence)
        self._restless = True
        over = self._answers.restrict(sequence, None)
        if over is not None:
            self._end(*over)

    def cancel(self, name: str) -> None:
        """End a request that is open."""
        sequence = self._ledger.open.get(name)
        if sequence is not None:
            self._end(sequence, "cancelled")

    def fail(self, message: str) -> None:
        """End all that is open: nothing can go on."""
        self._rows.settle()
        for sequence in list(self._ledger.open.values()):
            self._ledger.end(sequence, "error", message)

    def cancel_all(self) -> None:
        """End every request."""
        for name in list(self._ledger.open):
            self.cancel(name)

    def take_events(self) -> tuple[Items[Event], list[str]]:
        """What there is to tell since the last time, and which requests that ends."""
        return self._ledger.take()

    def turn(self) -> None:
        """Go on by a step.

        Raises `DeviceError`: the device failed.
        Raises `CallerError`: somebody else took the session's states.
        """
        self._session.require_turn(self._own)
        now, began, device = self._clock(), self._cpu(), self._calls.device_seconds
        self._turns += 1
        if now >= self._next_deadline:
            self._end_late(now)
        self._restless |= self._holdings.landed()
        if not self._go_on():
            self._compose()
            self._go_on()
        if self._flights:
            self._land(self._flights.popleft())
        self._host_seconds += self._cpu() - began - (self._calls.device_seconds - device)
        self._step_seconds += self._clock() - now

    def close(self) -> None:
        """Wait for what is under way, and forget what is kept."""
        for flight in self._flights:
            self._calls.land(flight)
        self._flights.clear()
        self._holdings.close()

    def stats(self) -> Stats:
        """What was done and is held."""
        running = self._running.held()
        total, held, kept = self._holdings.pages
        return Stats(
            running=len(running),
            waiting=len(self._queue),
            batch=tuple((sequence.id, held, sequence.made) for sequence, held in running),
            pages_total=total,
            pages_held=held,
            pages_cached=kept,
            steps=self._steps,
            step_seconds=self._step_seconds,
            host_seconds=self._host_seconds,
            begun=self._queue.begun,
            waited_seconds=self._queue.waited_seconds,
            prompt_tokens=self._ledger.prompt_tokens,
            cached_tokens=self._ledger.cached_tokens,
            fed_tokens=self._piece_calls.fed_tokens,
            made_tokens=self._ledger.made_tokens,
            finished=self._ledger.finished,
            preempted=self._preempted,
            evicted=self._holdings.evicted,
            parked=self._holdings.parked,
            remaps=self._holdings.remaps,
            woken=self._holdings.woken,
            slots_total=self._holdings.slots[0],
            slots_held=self._holdings.slots[1],
            prefixes=self._holdings.prefixes[0],
            prefixes_parked=self._holdings.prefixes[1],
            host_bytes=self._holdings.host_bytes,
            rounds=self._rounds.played,
            drafted=self._rounds.drafted,
            accepted=self._rounds.accepted,
        )

    # --- a turn ---

    def _end_late(self, now: float) -> None:
        """End what is over time, and find when the next is; one that ended may be looked for."""
        timed = [
            (sequence.request.deadline, sequence)
            for sequence in self._ledger.open.values()
            if sequence.request.deadline is not None
        ]
        for deadline, sequence in timed:
            if deadline <= now:
                self._end(sequence, "deadline")
        self._next_deadline = min((d for d, _ in timed if d > now), default=math.inf)

    def _go_on(self) -> bool:
        """Let the steps under way be followed by others; whether any are."""
        chain, rows = self._chain, self._rows
        coming = self._running.prompts or self._running.ready
        if chain is None or rows.edition != self._chained or coming or not len(rows):
            return False
        if self._restless and len(self._queue) and len(rows) < self._most:
            return False
        left, each = rows.steps_left(), self._able.stride
        if each > 1:
            left = self._rounds.needed(left)
        while len(self._flights) < min(self._ahead, left):
            already = len(self._flights)
            if not self._running.extend_all((already + 2) * each):
                break
            self._flights.append(self._calls.chain(chain, already))
        return bool(self._flights)

    def _compose(self) -> None:
        """A step from the host once those under way are over; pieces of prompts go behind these."""
        if len(self._queue):
            self._enter()
        if self._running.prompts:
            self._pieces.extend(self._prompts.start(self._turns))
        while self._flights:
            self._land(self._flights.popleft())
        self._running.seat()
        self._make_room()
        self._step()
        while self._pieces:
            self._land_piece(self._pieces.popleft())

    def _enter(self) -> None:
        """Let in who waits."""
        self._restless = False
        running = len(self._running)
        prompts = self._running.prompts
        for sequence in self._queue.enter(self._most - running, prompts, running):
            prompts.append(sequence)
            self._prompts.seat(sequence)

    def _make_room(self) -> None:
        """Pages for the rows' next tokens: the youngest give way where there are not enough."""
        ahead = 2 * self._able.stride
        for sequence in () if self._running.extend_all(ahead) else self._rows.short(ahead):
            while sequence.row >= 0 and not self._running.extend(sequence, ahead):
                self._preempted += 1
                self._wait_again(self._running.youngest(), keep=True)

    def _step(self) -> None:
        """Start a step of every row."""
        self._chain = None
        if not len(self._rows):
            return
        shape = self._rounds.next() if self._able.stride > 1 else None
        flight = self._calls.step() if shape is None else self._rounds.start(shape)
        self._flights.append(flight)
        if not self._rows.slow:
            self._chain = self._calls.follow(flight.program)
            self._chained = self._rows.edition

    # --- what comes back ---

    def _land_piece(self, flight: Flight) -> None:
        """Pieces of prompts are in."""
        found = self._calls.land(flight)
        if flight.failed(found):
            # some may have ended or given way since
            self._suspect([s for s in flight.sequences if s.lease], flight.fault(found))
            return
        said = self._calls.settings.told(found, flight.sequences)
        made = made_by(flight, found)
        for at, sequence in enumerate(flight.sequences):
            if sequence.lease is None:
                continue
            self._restless |= self._prompts.went_in(sequence, flight.counts[at])
            if made[at] and not sequence.left:
                self._begin(sequence, made[at], said[at : at + 1])
            if not sequence.over:
                self._prompts.seat(sequence)

    def _begin(self, sequence: Sequence, made: Items[int], said: Items[Likely]) -> None:
        """A prompt has what follows it: a token, or some of a round."""
        if len(made) == 1:
            over = self._answers.begin(sequence, made[0], said)
        else:
            over = self._rounds.begin(sequence, made)
        if over is not None:
            self._end(*over)

    def _land(self, flight: Flight) -> None:
        """A step is over: a token for each of its rows."""
        found = self._calls.land(flight)
        self._steps += 1
        if flight.failed(found):
            self._isolate(flight, flight.fault(found))
            return
        if flight.program.count is not None:
            for over in self._rounds.take(flight, found):
                self._end(*over)
            return
        emits = flight.program.emits
        if emits is None:
            raise AssertionError("a step hands tokens back")
        rows, count = self._rows, len(flight.sequences)
        made = found[emits.buffer].reshape(-1)[: count * emits.width : emits.width]
        said = self._calls.settings.told(found, flight.sequences)
        if flight.edition != rows.edition:
            # some are over, and their tokens of no use; nobody came: rows are taken between steps
            at = rows.places_in(flight.sequences)
            made, said = made[at], [said[place] for place in at] if said else said
        if len(rows):
            for over in self._answers.take(made, made.tolist(), said):
                self._end(*over)

    def _isolate(self, flight: Flight, fault: str) -> None:
        """A step failed."""
        self._chain = None
        while self._flights:
            self._calls.land(self._flights.popleft())
        self._rows.settle()
        self._suspect([s for s in flight.sequences if not s.over], fault)

    def _suspect(self, sequences: Items[Sequence], fault: str) -> None:
        """A call failed with some: each computes its tokens again alone, and fails alone."""
        for sequence in sequences:
            come_on = len(sequence.tokens) > sequence.struck
            sequence.strikes = 1 if come_on else sequence.strikes + 1
            sequence.struck = len(sequence.tokens)
            if len(sequences) == 1 or sequence.strikes == _MOST_STRIKES:
                self._end(sequence, "error", fault)
            else:
                self._wait_again(sequence, keep=False)

    def _wait_again(self, sequence: Sequence, *, keep: bool) -> None:
        """A sequence lets go of what it holds, and goes on when there is room again."""
        self._leave(sequence, keep=keep)
        sequence.fed = 0
        sequence.gave_way = True
        if sequence.edits is not None:
            sequence.edits = edits_of(self._able, sequence.request)
        self._queue.put(sequence)

    def _end(self, sequence: Sequence, reason: Reason, message: str = "") -> None:
        """A request is over."""
        if sequence.lease is None:
            self._queue.remove(sequence)
        else:
            self._leave(sequence, keep=reason != "error")
        self._ledger.end(sequence, reason, message)

    def _leave(self, sequence: Sequence, *, keep: bool) -> None:
        if keep and self._holdings.geometry.per_sequence:
            # a state of one exact length is past it when calls are under way, or a round was
            flights = (*self._flights, *self._pieces)
            under_way = any(sequence in flight.sequences for flight in flights)
            keep = not (under_way or sequence.past)
        self._running.leave(sequence, keep=keep)
        self._restless = True
