"""A loaded package driven as a server drives it, and timed."""

from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from bedstone.bench.cases import MOST_STEPS, Case, first_length, steps_of_a_sample
from bedstone.errors import CallerError
from bedstone.runtime.feeder import Feeder
from bedstone.runtime.generate import Generator, not_finite
from bedstone.runtime.inputs import Feed
from bedstone.runtime.lease import Lease
from bedstone.runtime.sampler import Drawing
from bedstone.runtime.session import Session
from bedstone.spec.package import Lock
from bedstone.spec.sampling import LIKELIEST
from bedstone.verify.protocol import Chain, Shape, protocol

Clock = Callable[[], float]

_FILLED_BYTES = 16 << 20


class Driver:
    """Sequences of a session, at whatever length a case asks for.

    Their pages hold random numbers, as if prompts had been read. Tokens fed are random too, from a
    seeded generator.
    """

    def __init__(
        self, session: Session, lock: Lock, vocab: int, clock: Clock = perf_counter
    ) -> None:
        self._session = session
        self._lock = lock
        self._protocol = protocol(session.verified)
        self._clock = clock
        self._tokens = np.random.default_rng(2).integers(0, vocab, lock.context).tolist()

    def fill(self, block: NDArray[np.uint8]) -> None:
        """Fill the paged states with `block`, end to end."""
        manifest, capacity = self._session.manifest, self._session.capacity
        for name, state in manifest.states.items():
            total = state.bytes_per_token * capacity.tokens
            for start in range(0, total, _FILLED_BYTES):
                part = block[: min(_FILLED_BYTES, total - start)]
                self._session.fill(name, start, part)

    def sample(self, case: Case, steps: int) -> float:
        """Seconds of a prompt, or of a step on average over `steps`."""
        return self._prefill(case) if case.kind == "prefill" else self._decode(case, steps)

    def warm(self, case: Case) -> int:
        """Run a case until it has run all that a sample runs; the steps of a sample."""
        if case.kind == "prefill":
            self._prefill(case)
            return 1
        self._decode(case, 1)
        steps = steps_of_a_sample(case, self._decode(case, min(4, max(1, case.context // 8))))
        self._decode(case, steps)
        return steps

    def _prefill(self, case: Case) -> float:
        generator = Generator(self._session)
        began = self._clock()
        generator.prefill(self._tokens[: case.context])
        return self._clock() - began

    def _decode(self, case: Case, steps: int) -> float:
        shape, chain = self._programs(case.batch)
        leases = self._leases(case)
        self._session.begin()
        length = first_length(case, steps, self._lock.context)
        self._seed(shape, leases, length)
        counts = [1] * steps if self._measures(chain) else [steps]
        collect = [chain.emits.buffer, *filter(None, [chain.error])]
        began = self._clock()
        runs = []
        for count in counts:
            length += count
            given = self._protocol.call_vars(case.batch, case.batch, longest=length)
            runs.append(self._session.start(chain.program, count, collect, **given))
        found = [run.wait() for run in runs]
        taken = self._clock() - began
        flags = next((outputs[-1] for outputs in found if outputs[-1].any()), None)
        if chain.error is not None and flags is not None:
            raise not_finite(chain, flags, f"in {case}")
        return taken / steps

    def _seed(self, shape: Shape, leases: Sequence[Lease], length: int) -> None:
        """The step that the chain goes on from: it makes the sequences `length` long."""
        feeder = Feeder(self._session, self._protocol, (shape,), leases)
        feeder.write_tables((shape,), leases)
        feeds = [Feed([self._tokens[at]], length - 1, lease) for at, lease in enumerate(leases)]
        feeder.write(shape, feeds, [Drawing(LIKELIEST)] * len(feeds))
        given = self._protocol.call_vars(len(leases), len(leases), longest=length)
        self._session.run(shape.program, **given)

    def _measures(self, chain: Chain) -> bool:
        """Whether a step's own length is among the chain's vars."""
        context = self._protocol.context
        return context is not None and context.name in self._session.reads(chain.program)

    def _programs(self, batch: int) -> tuple[Shape, Chain]:
        shape = self._protocol.step(batch)
        chains = () if shape is None else self._protocol.follow(shape, batch, self._session.reads)
        if shape is None or not chains:
            raise CallerError(f"no program goes on by itself after a step of {batch} sequences")
        return shape, chains[0]

    def _leases(self, case: Case) -> list[Lease]:
        capacity = self._session.capacity
        unit = self._protocol.page_tokens or capacity.unit
        each = self._lock.pages(case.context + MOST_STEPS) // unit
        return [
            Lease(tuple(range(each * i, each * i + each)), unit, slot=i + 1)
            for i in range(case.batch)
        ]
