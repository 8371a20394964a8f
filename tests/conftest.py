"""What all tests share: interrupts, generated cases, and where what they compile is kept."""

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # a shell's background job ignores interrupts, and so would every process that tests start
    signal.signal(signal.SIGINT, signal.default_int_handler)

# a clock on the wall says as much of what else the machine does as of what is tested
settings.register_profile("any", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first: no worker is left alone with a long one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(autouse=True)
def _loggers() -> Iterator[None]:
    """A server that runs in a test's own process says where its log goes: for that test alone."""
    named = [logging.getLogger(f"bedstone.serve{name}") for name in ("", ".rates", ".requests")]
    before = [(each.handlers, each.propagate, each.level) for each in named]
    yield
    for each, (each.handlers, each.propagate, level) in zip(named, before, strict=True):
        each.setLevel(level)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests of all workers: nothing is compiled twice.

    Or where `BEDSTONE_TEST_CACHE` says that compiled modules are.
    """
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if base.name.startswith("popen-") else base) / "cache"
    kept = Path(os.environ.get("BEDSTONE_TEST_CACHE", shared))
    (kept / "modules").mkdir(parents=True, exist_ok=True)
    return kept


@pytest.fixture(scope="session")
def modules(cache: Path) -> Path:
    """The folder of the cache that holds compiled modules."""
    return cache / "modules"


@pytest.fixture
def own_cache(tmp_path: Path, modules: Path) -> Path:
    """A cache of this test alone, but for its modules: those are everyone's."""
    own = tmp_path / "cache"
    own.mkdir()
    (own / "modules").symlink_to(modules)
    return own
