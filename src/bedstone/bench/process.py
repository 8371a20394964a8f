"""How long this process has been running."""

import os
from pathlib import Path

_START_FIELD = 19
"""Of `/proc/self/stat`, counted behind the name, which may hold spaces: clock ticks since boot."""


def process_seconds(proc: Path = Path("/proc")) -> float | None:
    """Seconds since this process was started, its interpreter and imports included.

    None where the system does not tell.
    """
    try:
        started = (proc / "self/stat").read_text().rpartition(")")[2].split()[_START_FIELD]
        up = (proc / "uptime").read_text().split()[0]
    except OSError:
        return None
    return float(up) - int(started) / os.sysconf("SC_CLK_TCK")
