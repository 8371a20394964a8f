"""The whole of a server in this process: a front over the real engine, at a port."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from bedstone.build.request import read_package
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.runtime.load import load
from bedstone.serve.engine import ThreadedEngine
from bedstone.serve.http.backend import Backend
from bedstone.serve.http.bridge import Bridge
from bedstone.serve.http.front import Front, Voice
from bedstone.serve.http.settings import Settings
from fronts import Served


class Whole:
    """A real engine behind what serves a front."""

    def __init__(self, package: Path, cache: Path, sequences: int) -> None:
        self.opened = open_checkpoint(read_package(package).lock.checkpoint)
        self.session = load(package, cache=cache, threads=1, sequences=sequences)
        bridge = Bridge()
        self.engine = ThreadedEngine(self.session, bridge.deliver, clock=monotonic)
        voice = Voice(self.opened.tokenizer, self.opened.chat_template)
        settings = Settings(model="succ")
        self.backend = Backend.of(self.engine, self.opened.tokenizer, settings, monotonic)
        self.front = Front(
            self.backend.link, bridge, voice, settings, monotonic, lambda: datetime.now(UTC)
        )

    def close(self) -> None:
        self.front.workers.close()
        self.backend.close()
        self.session.close()
        self.opened.close()


@contextmanager
def serving(package: Path, cache: Path, sequences: int) -> Iterator[Served]:
    """A package served."""
    whole = Whole(package, cache, sequences)
    server = Served(whole)
    try:
        yield server
    finally:
        server.close()
        whole.close()
