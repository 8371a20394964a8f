"""The engine over a device that works apart from the host, by a driver that is a fake."""

import pytest

from bedstone.runtime.cuda import bindings
from bedstone.runtime.load import load
from bedstone.serve.engine.options import Options
from cuda_fake import Driver
from cuda_toy import MODULE, toy_code, toy_cuda_parts
from driven import Driven
from runtime_toy import PAGE, expected

PROMPTS = ([5, 11, 2, 40, 7, 1, 31, 8, 3, 9, 21], [4, 4], [5, 11, 2, 40, 7, 1, 31, 8, 3])


@pytest.fixture
def driver(monkeypatch):
    driver = Driver({MODULE: toy_code()})
    monkeypatch.setattr(bindings, "open_driver", lambda _ordinal: driver)
    return driver


@pytest.mark.parametrize("host_bytes", [0, 2**20])
def test_steps_are_under_way_while_others_are_read(driver, tmp_path, host_bytes):
    with load(toy_cuda_parts(tmp_path), device="cuda", tokens=7 * PAGE) as session:
        engine = Driven(session, Options(host_bytes=host_bytes))
        most = 0
        for turn in range(2):
            for index, prompt in enumerate(PROMPTS):
                engine.submit(f"{turn}.{index}", prompt, 12)
            while engine.core.busy:
                engine.turn()
                most = max(most, len(engine.core._flights))
            for index, prompt in enumerate(PROMPTS):
                assert engine.tokens[f"{turn}.{index}"] == expected(prompt, 12)
        assert most == session.ahead - 1
        assert engine.core.stats().evicted > 0
        assert (engine.core.stats().parked > 0) == (host_bytes > 0)
        engine.core.close()
    assert driver.leaks() == set()


def test_what_runs_over_a_stop_is_forgotten(driver, tmp_path):
    with load(toy_cuda_parts(tmp_path), device="cuda") as session:
        engine = Driven(session, Options())
        for prompt in PROMPTS:
            said = expected(prompt, 12)
            stop = said[6]
            engine.submit(f"{prompt}", prompt, 12, stop_ids=[stop])
            engine.finish()
            assert engine.tokens[f"{prompt}"] == said[: said.index(stop)]
        engine.core.close()
    assert driver.leaks() == set()
