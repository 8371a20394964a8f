"""`bedstone serve` in a process of its own."""

import os
import subprocess
import sys
from contextlib import contextmanager


@contextmanager
def running(*arguments, **environ):
    """A server in a process of its own, and where it answers."""
    code = "from bedstone.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "serve", *map(str, arguments), "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environ},
    )
    try:
        line = process.stderr.readline()
        assert " is served at http://127.0.0.1:" in line, line + process.stderr.read()
        yield process, line.partition(" at ")[2].partition(": ")[0]
    finally:
        process.kill()
        process.stderr.close()
        process.wait()
