"""Run as a program: serves packages while memory goes from state to state; what has none faults.

    python tests/guarded_remap.py CACHE PACKAGE...

Each answer is that of a session that has the states for itself.
"""

import faulthandler
import sys
from collections.abc import Sequence
from pathlib import Path

from bedstone.runtime.cpu.device import CpuDevice
from bedstone.runtime.device import Finished, Memory, StateNeed
from bedstone.runtime.load import load
from bedstone.runtime.memory import rounded_up
from bedstone.serve.engine.options import Options
from driven import Driven
from guarded_session import protect

TOKENS, SEQUENCES = 512, 2
REQUESTS = [(index, 3 + 7 * index % 40, 4 + 5 * index % 17) for index in range(24)]
"""Of each the seed of a prompt, its tokens, and how many follow."""


def allocated(self: CpuDevice, needs: Sequence[StateNeed], chunk: int) -> tuple[Memory, ...]:
    """States of which only what has memory may be touched."""
    states = ALLOCATE(self, needs, chunk)
    for memory in states:
        if memory.reserved:
            held = rounded_up(memory.nbytes, chunk)
            protect(memory.address + held, memory.reserved - held, touched=False)
    return states


def remapped(self: CpuDevice, moves: Sequence[tuple[int, int]], chunk: int) -> Finished:
    done = REMAP(self, moves, chunk)
    for source, target in moves:
        protect(source, chunk, touched=False)
        protect(target, chunk, touched=True)
    return done


ALLOCATE, REMAP = CpuDevice.allocate_states, CpuDevice.remap


def prompt(index: int, length: int) -> list[int]:
    """Tokens; every third prompt begins as the one before does."""
    return [(7 * at + index - (index % 3 == 2)) % 58 + 3 for at in range(length)]


def serve(package: Path, cache: Path) -> None:
    with load(package, cache=cache, threads=2) as alone:
        expected = [list(alone.generate(prompt(i, n), count)) for i, n, count in REQUESTS]
    sizes = {"tokens": TOKENS, "sequences": SEQUENCES, "remaps": True}
    with load(package, cache=cache, threads=2, **sizes) as session:
        for host_bytes in (0, 2**22):
            engine, most = Driven(session, Options(host_bytes=host_bytes)), 0
            for index, length, count in REQUESTS:
                engine.submit(f"{index}", prompt(index, length), count)
            while engine.core.busy:
                engine.turn()
                most = max(most, len(engine.core._rows))
            assert [engine.tokens[f"{index}"] for index, _, _ in REQUESTS] == expected
            assert most > SEQUENCES + 1, most
            assert engine.core.stats().remaps > 1, engine.core.stats()
            engine.core.close()
        assert list(session.generate(prompt(0, 40), 9)) == list(session.generate(prompt(0, 40), 9))


def main() -> None:
    faulthandler.enable()
    CpuDevice.allocate_states, CpuDevice.remap = allocated, remapped
    cache, *packages = map(Path, sys.argv[1:])
    for package in packages:
        serve(package, cache)


if __name__ == "__main__":
    main()
