"""How much memory a command holds with all its processes, looked at while it runs; and its time."""

import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from time import sleep

from bedstone.prove.swap.drive import limits
from bedstone.prove.swap.workload import capacity
from bedstone.runtime.memory import (
    array_bytes,
    mapped_bytes,
    plan_capacity,
    state_needs,
    upper_bounds,
)
from bedstone.spec.manifest import Manifest
from bedstone.verify import verify
from bedstone.verify.protocol import protocol

_EVERY = 0.05
_PLENTY = 1 << 50


@dataclass(frozen=True)
class Held:
    """How a command ended, what it printed, and the most bytes that it held at a moment.

    `busy` are the seconds that its processes had a core, added up: what else runs here takes none.
    """

    code: int
    stdout: str
    most: int
    busy: float


def held_by(command: Sequence[str], env: Mapping[str, str]) -> Held:
    """Run a command of Bedstone; pages that its processes share count once."""
    start = [sys.executable, "-c", "from bedstone.cli import main; main()"]
    most, before = 0, _busy()
    with TemporaryFile("w+") as out:
        with subprocess.Popen([*start, *command], env=env, stdout=out) as running:
            while running.poll() is None:
                most = max(most, sum(map(_share, _tree(running.pid))))
                sleep(_EVERY)
        out.seek(0)
        return Held(running.returncode, out.read(), most, _busy() - before)


def python_bytes(module: str) -> int:
    """What a process holds that has imported a module and done nothing."""
    code = f"import {module}; input()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as idle:
        held = 0
        # once it waits for input it holds no more
        while idle.poll() is None and (not held or held != _share(idle.pid)):
            held = _share(idle.pid)
            sleep(0.5)
        idle.communicate(b"\n")
    return held


def model_bytes(manifest: Manifest) -> int:
    """Weights, buffers and states that `bedstone run` of a package holds."""
    return _bytes(manifest, None, 1)


def side_bytes(manifest: Manifest) -> int:
    """Weights, buffers and states that a side of a swap holds."""
    known = protocol(verify(manifest))
    return _bytes(manifest, *capacity(known, limits(manifest, known)))


def _bytes(manifest: Manifest, tokens: int | None, sequences: int) -> int:
    upper = upper_bounds(manifest)
    buffers = (array_bytes(b.dtype, b.shape, upper) for b in manifest.buffers.values())
    planned = plan_capacity(manifest, tokens, sequences, _PLENTY)
    return sum(buffers) + mapped_bytes(state_needs(manifest, planned).values(), 1)


def _busy() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _tree(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from _tree(int(child))


def _share(pid: int) -> int:
    """The proportional set size of a process; none of one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
