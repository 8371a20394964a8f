"""A long build as a user leaves it: what is compiled stays, the rest is never begun."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bedstone.cli.guard import INTERRUPTED
from e2e_cli import environment

BUILD = [sys.executable, "-c", "from bedstone.cli import main; main()", "target", "build"]
MOST_SECONDS = 120
FEW = 50


@pytest.mark.slow
def test_an_interrupt_leaves_a_build_with_what_is_compiled(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*BUILD, "hopper"],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        until = time.monotonic() + MOST_SECONDS
        while not list(tmp_path.glob("modules/*.cubin")) and time.monotonic() < until:
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
        # a terminal interrupts every process of its group
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=MOST_SECONDS)
    assert (process.returncode, out, err) == (INTERRUPTED, b"", b"")
    assert 0 < len(list(tmp_path.glob("modules/*"))) < FEW
    assert not list(tmp_path.glob("modules/.*"))
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
