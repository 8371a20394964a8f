"""The server and its engine over the GPU: many at once, each answered as it is alone."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from bedstone.build.emit import PAGE
from bedstone.runtime.load import load as load_package
from bedstone.serve.engine.options import Options
from bedstone.serve.requests import Sampling
from bedstone.spec.sampling import LIKELIEST
from driven import Driven
from letters import write_tokenizer
from packages import compiled
from serve.test_load import CONTEXT, load
from served import running
from tiny_models import write_tiny

SEQUENCES, REQUESTS = 64, 600
LIMIT, PENALISED, COMING = 100e-6, 200e-6, 400e-6
"""Seconds of processor time of a step of 64 sequences, beside the device's work: of ones that are
there, of ones whose logits are edited after each token, and where nearly one comes each step."""


@pytest.fixture(scope="module", params=["llama", "qwen3-next-some-dense"])
def package(request, tmp_path_factory, cache, target) -> Path:
    folder = tmp_path_factory.mktemp("serve")
    model = write_tiny(request.param, folder / "checkpoint")
    model.config.max_position_embeddings = CONTEXT
    model.save_pretrained(folder / "checkpoint")
    write_tokenizer(folder / "checkpoint")
    how = {"numerics": "precise", "sequences": SEQUENCES, "sampler": True}
    return compiled(str(folder / "checkpoint"), folder / "package", cache, target, **how).path


@pytest.mark.slow
@pytest.mark.parametrize("host_memory", [0, 64])
def test_64_clients_get_what_each_gets_alone(package, cache, host_memory):
    how = ("--device", "cuda", "--tokens", "4096", "--queue", "100")
    tier = ("--host-memory", host_memory)
    place = {"BEDSTONE_CACHE": str(cache)}
    with running(package, *how, *tier, **place) as (process, url):
        ended, _, stats = asyncio.run(load(url, process, REQUESTS))
    assert sorted(ended) == list(range(REQUESTS))
    assert (stats["running"], stats["waiting"], stats["pages_held"]) == (0, 0, 0)


@pytest.fixture
def engine(package) -> Iterator[Driven]:
    """An engine for as many sequences as a step takes."""
    sizes = {"tokens": SEQUENCES * CONTEXT, "sequences": SEQUENCES}
    with load_package(package, device="cuda", **sizes) as session:
        made = Driven(session, Options(reuse=False))
        yield made
        made.core.cancel_all()
        made.core.close()


def seat_all(engine: Driven, sampling: Sampling = LIKELIEST) -> None:
    """As many sequences as a step takes, that go on to the end of the context."""
    for index in range(SEQUENCES):
        engine.submit(f"r{index}", [3 + index % 50] * 8, CONTEXT - 8, sampling=sampling)
    while len(engine.core._rows) < SEQUENCES:
        engine.turn()


@pytest.mark.parametrize("chained", [True, False])
def test_the_host_takes_little_of_a_step(engine, chained, monkeypatch):
    if not chained:
        monkeypatch.setattr(engine.core._calls, "follow", lambda _shape: None)
    seat_all(engine)
    assert engine.host_seconds(3, PAGE) < LIMIT


def test_the_host_takes_little_of_rows_that_are_penalised(engine):
    seat_all(engine, Sampling(presence=0.5, frequency=0.25))
    assert engine.host_seconds(3, PAGE) < PENALISED


def test_the_host_takes_little_while_clients_come_and_go(engine):
    assert engine.come_and_go(SEQUENCES, 4, PAGE) < COMING
