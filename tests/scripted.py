"""Vocabularies whose tokens spell what a test says, and an engine that answers as it is told."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from bedstone.checkpoint.pieces import BYTE_OF
from bedstone.checkpoint.tokenizer import Tokenizer
from bedstone.errors import CallerError, CapacityError
from bedstone.serve.requests import Event, Finished, Limits, Reason, Request, Stats, Token

_PRIVATE = 0xF0000


class Spelled(Tokenizer):
    """A tokenizer whose first ids are `pieces`, equal ones too; the 256 bytes follow."""

    def __init__(self, pieces: Sequence[str | bytes], backend: Backend, bos, eos) -> None:
        super().__init__(backend, bos, eos)
        self.spelled = [p.encode() if isinstance(p, str) else p for p in pieces]

    def piece(self, token_id: int) -> bytes:
        if token_id < len(self.spelled):
            return self.spelled[token_id]
        return super().piece(token_id)


def letters(
    pieces: Sequence[str | bytes],
    *,
    special: Sequence[str] = (),
    eos: Sequence[int] = (),
    bos: int | None = None,
) -> Spelled:
    """The vocabulary of `pieces`, the 256 bytes that any text is encoded to, and `special` ones."""
    names = [chr(_PRIVATE + at) for at in range(len(pieces))] + list(BYTE_OF)
    backend = Backend(models.BPE({name: at for at, name in enumerate(names)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(text, special=True) for text in special])
    return Spelled(pieces, backend, bos, tuple(eos))


Script = Callable[[Request], Iterator[int | Exception]]
SUCCESSOR, OTHER = -0.24274488, -4.24271288


def successor(request: Request) -> Iterator[int]:
    """After token i comes i + 1, for ever."""
    token = request.tokens[-1]
    while True:
        token += 1
        yield token


class ScriptedEngine:
    """Answers each request by a script, a token a step, from a thread of its own.

    Log-probabilities are those of the model that says i + 1 after i. An exception in a script ends
    its request with an error.
    """

    def __init__(
        self,
        deliver: Callable[[Sequence[Event]], None],
        script: Script = successor,
        *,
        limits: Limits | None = None,
        step: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._deliver = deliver
        self._script = script
        self.limits = limits or Limits(context=4096, vocab=400, sequences=4, queue=16)
        self.step = step
        self._clock = clock
        self._lock = threading.Condition()
        self._waiting: deque[tuple[Request, Iterator]] = deque()
        self._running: dict[str, list] = {}
        self._cancelled: set[str] = set()
        self._closing: float | None = None
        self.finished: dict[Reason, int] = dict.fromkeys(
            ("stop", "length", "cancelled", "deadline", "error"), 0
        )
        self.steps = self.made = self.prompts = self.cached = 0
        self.seen: list[Request] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def submit(self, request: Request) -> None:
        if len(request.tokens) + request.max_tokens > self.limits.context:
            raise CallerError("longer than the context")
        if request.max_tokens < 1 or not request.tokens:
            raise CallerError("nothing to go on from, or nothing to make")
        with self._lock:
            busy = len(self._running) + len(self._waiting)
            if self._closing is not None or busy >= self.limits.sequences + self.limits.queue:
                raise CapacityError("as many requests wait as may")
            self.seen.append(request)
            self._waiting.append((request, iter(self._script(request))))
            self._lock.notify()

    def cancel(self, request: str) -> None:
        with self._lock:
            self._cancelled.add(request)
            self._lock.notify()

    def stats(self) -> Stats:
        with self._lock:
            batch = tuple(
                (name, len(r.tokens) + made, made) for name, (r, _, made) in self._running.items()
            )
            held = sum(-(-tokens // 32) for _, tokens, _ in batch)
            return Stats(
                running=len(batch), waiting=len(self._waiting), batch=batch, pages_total=64,
                pages_held=held, pages_cached=3, steps=self.steps, step_seconds=self.steps * 0.01,
                host_seconds=self.steps * 0.001, prompt_tokens=self.prompts, cached_tokens=0,
                begun=len(self.seen), waited_seconds=0.5,
                fed_tokens=self.prompts, made_tokens=self.made, finished=dict(self.finished),
                preempted=0, evicted=0, parked=0, rounds=4, drafted=8, accepted=(3, 1),
            )  # fmt: skip

    def close(self, grace: float) -> None:
        with self._lock:
            self._closing = self._clock() + grace
            self._lock.notify()
        self._thread.join(grace + 5)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not (self._waiting or self._running) and self._closing is not None:
                    return
                if not (self._waiting or self._running):
                    self._lock.wait(0.05)
                if self._closing is not None and self._clock() >= self._closing:
                    self._cancelled |= {r.id for r, _ in self._waiting} | set(self._running)
                events = self._step()
            if events:
                self._deliver(events)
                time.sleep(self.step)

    def _step(self) -> list[Event]:
        events: list[Event] = []
        for at in [at for at in self._waiting if at[0].id in self._cancelled]:
            self._waiting.remove(at)
            events.append(self._ended(at[0], 0, "cancelled"))
        while self._waiting and len(self._running) < self.limits.sequences:
            request, script = self._waiting.popleft()
            self._running[request.id] = [request, script, 0]
            self.prompts += len(request.tokens)
        for name in list(self._running):
            events += self._advance(name)
        self._cancelled.clear()
        self.steps += bool(events)
        return events

    def _advance(self, name: str) -> list[Event]:
        request, script, made = self._running[name]
        late = request.deadline is not None and self._clock() > request.deadline
        if name in self._cancelled or late:
            return [self._ended(request, made, "deadline" if late else "cancelled")]
        token = next(script, None)
        if isinstance(token, Exception):
            return [self._ended(request, made, "error", str(token))]
        if request.constraint is not None:
            token = _allowed(request, token, self.limits.vocab)
        if token is None or token in request.stop_ids:
            return [self._ended(request, made, "stop")]
        self._running[name][2] = made = made + 1
        self.made += 1
        events: list[Event] = [_told(request, token, made)]
        if request.constraint is not None and not request.constraint.accept(token):
            return [*events, self._ended(request, made, "stop")]
        if made == request.max_tokens:
            events.append(self._ended(request, made, "length"))
        return events

    def _ended(self, request: Request, made: int, reason: Reason, message: str = "") -> Finished:
        self._running.pop(request.id, None)
        self.finished[reason] += 1
        return Finished(request.id, reason, len(request.tokens), self.cached, made, message)


def _allowed(request: Request, token: int | None, vocab: int) -> int | None:
    """The scripted token where the constraint allows it, else the first that it does."""
    bits = request.constraint.allowed()
    assert len(bits) == math.ceil(vocab / 32)
    allowed = [at for at in range(len(bits) * 32) if bits[at // 32] >> (at % 32) & 1]
    if token in allowed:
        return token
    return next(iter(allowed), None)


def _told(request: Request, token: int, made: int) -> Token:
    most = request.sampling.logprobs
    if most is None:
        return Token(request.id, token)
    prior = request.tokens[-1] + made - 1
    follows = token == prior + 1
    top = [(prior + 1, SUCCESSOR), *((at, OTHER) for at in range(16) if at != prior + 1)]
    return Token(request.id, token, SUCCESSOR if follows else OTHER, tuple(top[:most]))
