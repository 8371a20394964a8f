"""An engine in this process."""

from collections.abc import Callable, Iterator, Sequence

from bedstone.errors import CallerError
from bedstone.serve.link.link import Ask, Guide, Sight
from bedstone.serve.requests import Constraint, Engine, Limits, Request, Stats
from bedstone.serve.workers import Workers

Make = Callable[[Guide, Sequence[int], int], Sequence[Constraint | None]]
"""Makes a constraint of a guide, or of tokens that are forced, for each of so many sequences."""

Held = Sequence[Sequence[Constraint | None]]


class LocalLink:
    """Makes requests of what is asked; grammars are compiled by `workers`, `seconds` at most.

    `clock` is the engine's.
    """

    def __init__(
        self,
        engine: Engine,
        make: Make,
        workers: Workers,
        clock: Callable[[], float],
        seconds: float,
    ) -> None:
        self._engine = engine
        self._make = make
        self._workers = workers
        self._clock = clock
        self._seconds = seconds

    @property
    def limits(self) -> Limits:
        """What the engine can take."""
        return self._engine.limits

    async def submit(self, asks: Sequence[Ask], guide: Guide | None = None) -> None:
        """Have all of them taken, or none; all answers are held to the guide.

        Raises `BedstoneError`: the engine's own, or the guide is none, or takes too long to make.
        """
        held = await self._constraints(asks, guide or Guide())
        taken: list[str] = []
        try:
            for request in self._requests(asks, held):
                self._engine.submit(request)
                taken.append(request.id)
        except Exception:
            self.cancel(taken)
            raise

    def cancel(self, requests: Sequence[str]) -> None:
        """End requests at the next step; those that are over, or unknown, are left alone."""
        for request in requests:
            self._engine.cancel(request)

    async def look(self) -> Sight:
        """What there is to see."""
        return Sight(self.stats())

    def stats(self) -> Stats:
        """What the engine has done and holds."""
        return self._engine.stats()

    async def _constraints(self, asks: Sequence[Ask], guide: Guide) -> Held:
        """The constraint of each choice; only grammars are worth a thread."""

        def made() -> Held:
            return [self._make(guide, ask.forced, len(ask.choices)) for ask in asks]

        if guide.grammar is None:
            return made()
        try:
            return await self._workers.run(made, self._seconds)
        except TimeoutError:
            raise CallerError(f"the grammar takes more than {self._seconds} s to compile") from None

    def _requests(self, asks: Sequence[Ask], held: Held) -> Iterator[Request]:
        now = self._clock()
        for ask, constraints in zip(asks, held, strict=True):
            for (name, sampling), constraint in zip(ask.choices, constraints, strict=True):
                yield Request(
                    id=name,
                    tokens=ask.tokens,
                    max_tokens=ask.max_tokens,
                    stop_ids=ask.stop_ids,
                    sampling=sampling,
                    constraint=constraint,
                    deadline=None if ask.seconds is None else now + ask.seconds,
                )
