"""An engine of this process as fronts of any process are served by it."""

from bedstone.checkpoint.tokenizer import Tokenizer
from bedstone.serve.http.front import kept
from bedstone.serve.http.run import Clock
from bedstone.serve.http.settings import Settings
from bedstone.serve.link.local import LocalLink
from bedstone.serve.requests import Engine
from bedstone.serve.text.guide import Guides
from bedstone.serve.workers import Workers
from bedstone.spec.frozen import Frozen


class Backend(Frozen):
    """The engine, the way to it, and the threads that compile grammars for it."""

    engine: Engine
    link: LocalLink
    workers: Workers

    @staticmethod
    def of(engine: Engine, tokenizer: Tokenizer, settings: Settings, clock: Clock) -> "Backend":
        """A backend; `clock` is the engine's."""
        guides = Guides(tokenizer, engine.limits.vocab, kept(tokenizer, settings))
        workers = Workers()
        link = LocalLink(engine, guides.make, workers, clock, settings.compile_seconds)
        return Backend(engine, link, workers)

    def close(self) -> None:
        """End whatever still runs."""
        self.workers.close()
        self.engine.close(0)
