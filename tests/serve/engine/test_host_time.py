"""What a step costs beside the device's work."""

import pytest

from bedstone.serve.engine.options import Options

SEQUENCES, PAGE = 64, 32
LIMIT = 200e-6
"""Seconds of processor time of a step of 64 sequences."""


@pytest.mark.parametrize("chained", [True, False])
def test_the_host_takes_little_of_a_step(core, chained, monkeypatch):
    shape = {"groups": SEQUENCES, "rows": 64, "page": PAGE, "width": 16, "sequences": SEQUENCES}
    engine = core(Options(reuse=False), pages=1024, **shape)
    if not chained:
        monkeypatch.setattr(engine.core._calls, "follow", lambda _shape: None)
    for index in range(SEQUENCES):
        engine.submit(f"r{index}", [1 + index] * 8, 300)
    while len(engine.core._rows) < SEQUENCES:
        engine.turn()
    assert engine.host_seconds(4, PAGE) < LIMIT
