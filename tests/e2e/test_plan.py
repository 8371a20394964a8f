"""What `bedstone plan` says is what the runtime launches."""

import json

import pytest

from bedstone.runtime.load import load
from bedstone.runtime.null import NullDevice
from command_line import bedstone

PROGRAMS = {"decode": "decode", "chunk": "prefill"}
"""The program that runs each form."""


@pytest.fixture
def launched(monkeypatch):
    """How many launches each replay has made, the latest last."""
    counts = []
    replay = NullDevice.replay

    def counting(self, capture, repeat, taps):
        counts.append(capture.count)
        return replay(self, capture, repeat, taps)

    monkeypatch.setattr(NullDevice, "replay", counting)
    return counts


@pytest.mark.parametrize("form", PROGRAMS)
def test_a_step_launches_as_often_as_planned(tiny, launched, form):
    command = ("plan", tiny.checkpoint, "--numerics", "precise", "--form", form)
    plan = json.loads(bedstone(*command, "--bandwidth", "1", "--json").out)[form]
    with load(tiny.package.path, device="null") as session:
        program = PROGRAMS[form]
        session.run(program, **dict.fromkeys(session.reads(program), 3))
    assert launched[-1] == plan["launches"] == sum(plan["census"].values())
