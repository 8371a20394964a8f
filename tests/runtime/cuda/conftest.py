"""A driver that is this process's memory, with the toy model's kernels."""

import pytest

from bedstone.runtime.cuda import bindings
from cuda_fake import Driver
from cuda_toy import MODULE, toy_code


@pytest.fixture
def driver(monkeypatch):
    driver = Driver({MODULE: toy_code()})
    monkeypatch.setattr(bindings, "open_driver", lambda _ordinal: driver)
    return driver
