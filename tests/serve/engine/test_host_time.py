"""What a step costs beside the device's work."""

import pytest

from bedstone.runtime.load import load
from bedstone.serve.engine.options import Options
from bedstone.serve.requests import Sampling
from driven import Driven
from letters import write_tokenizer
from packages import compiled
from tiny_models import write_tiny

SEQUENCES, PAGE, CONTEXT = 64, 32, 320
LIMIT, COMING = 200e-6, 250e-6
"""Seconds of processor time of a step of 64 sequences: of ones that are there, and where nearly one
comes each step, which takes 131 and 165 µs on a machine that does nothing else."""

TOY = {"groups": SEQUENCES, "rows": 64, "page": PAGE, "width": 16, "sequences": SEQUENCES}


@pytest.mark.parametrize("chained", [True, False])
def test_the_host_takes_little_of_a_step(core, chained, monkeypatch):
    engine = core(Options(reuse=False), pages=1024, **TOY)
    if not chained:
        monkeypatch.setattr(engine.core._calls, "follow", lambda _shape: None)
    for index in range(SEQUENCES):
        engine.submit(f"r{index}", [1 + index] * 8, 300)
    while len(engine.core._rows) < SEQUENCES:
        engine.turn()
    assert engine.host_seconds(4, PAGE) < LIMIT


@pytest.mark.parametrize("reuse", [False, True])
def test_the_host_takes_little_while_clients_come_and_go(core, reuse):
    engine = core(Options(reuse=reuse), pages=1024, **TOY)
    assert engine.come_and_go(SEQUENCES, 16, PAGE) < COMING
    engine.finish()


@pytest.mark.slow
def test_the_host_takes_little_of_rows_that_are_penalised(tmp_path, cache):
    model = write_tiny("llama", tmp_path / "checkpoint")
    model.config.max_position_embeddings = CONTEXT
    model.save_pretrained(tmp_path / "checkpoint")
    write_tokenizer(tmp_path / "checkpoint")
    how = {"sequences": SEQUENCES, "sampler": True}
    package = compiled(str(tmp_path / "checkpoint"), tmp_path / "package", cache, **how)
    sizes = {"tokens": SEQUENCES * CONTEXT, "sequences": SEQUENCES}
    with load(package.path, cache=cache, threads=1, **sizes) as session:
        engine = Driven(session, Options(reuse=False))
        for index in range(SEQUENCES):
            asked = Sampling(presence=0.5, frequency=0.25, repetition=1 + index % 2 / 8)
            engine.submit(f"r{index}", [3 + index % 50] * 8, CONTEXT - 8, sampling=asked)
        while len(engine.core._rows) < SEQUENCES:
            engine.turn()
        assert engine.host_seconds(6, PAGE) < LIMIT
        engine.core.cancel_all()
        engine.core.close()
