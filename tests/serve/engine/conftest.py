from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from bedstone.runtime.load import load
from bedstone.runtime.session import Session
from bedstone.serve.engine.options import DEFAULTS, Options
from driven import Driven
from served_toy import served_parts


@pytest.fixture
def session(tmp_path, cache) -> Iterator[Callable[..., Session]]:
    """A session of the integer model; `pages` it has, and what else its shape is."""
    with ExitStack() as held:

        def make(pages: int = 64, sequences: int = 8, **shape: object) -> Session:
            parts = served_parts(tmp_path, cache, **shape)
            tokens = pages * int(shape.get("page", 4))
            opened = load(parts, cache=cache, threads=1, tokens=tokens, sequences=sequences)
            return held.enter_context(opened)

        yield make


@pytest.fixture
def core(session) -> Callable[..., Driven]:
    """An engine without a thread over the integer model."""

    def make(options: Options = DEFAULTS, **shape: object) -> Driven:
        return Driven(session(**shape), options)

    return make
