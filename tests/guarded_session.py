"""Run as a program: drives packages whose memory is fenced, so that one byte too far is a fault.

    python tests/guarded_session.py CACHE PACKAGE...

Each buffer, scratch, state and weight ends at a page that may not be touched. Inputs take the
least, the middle and the greatest value their domain allows, chains run far past the context.
"""

import ctypes
import faulthandler
import mmap
import sys
from pathlib import Path

import numpy as np

from bedstone.runtime import regions
from bedstone.runtime.cpu.device import CpuDevice
from bedstone.runtime.device import Memory
from bedstone.runtime.load import load
from bedstone.runtime.session import Session

PAGE = mmap.PAGESIZE
ALIGN = 64
"""What a vector of the widest set may be aligned to."""
RUNS = 24
_MPROTECT = ctypes.CDLL(None, use_errno=True).mprotect
_MPROTECT.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def protect(address: int, nbytes: int, *, touched: bool) -> None:
    """Whole pages that may be touched, or must not be."""
    access = mmap.PROT_READ | mmap.PROT_WRITE if touched else 0
    assert not nbytes or _MPROTECT(address, nbytes, access) == 0


def fenced(nbytes: int) -> Memory:
    """Zeroed memory between two forbidden pages, as close to the second as alignment allows."""
    size = -(-max(nbytes, 1) // ALIGN) * ALIGN
    inner = -(-size // PAGE) * PAGE
    whole = np.frombuffer(mmap.mmap(-1, inner + 2 * PAGE), np.uint8)
    for fence in (whole.ctypes.data, whole.ctypes.data + PAGE + inner):
        protect(fence, PAGE, touched=False)
    return Memory(whole.ctypes.data + PAGE + inner - size, nbytes, whole)


def copied(data: np.ndarray) -> Memory:
    """Mapped weights in fenced memory of their own."""
    memory = fenced(data.size)
    ctypes.memmove(memory.address, data.ctypes.data, data.size)
    return memory


def drive(session: Session) -> None:
    """Generate, then run every program at the edges of what its inputs and vars may be."""
    manifest = session.manifest
    context = int(manifest.buffers["position"].domain.max) + 1
    for length in (1, 31, 33, context - 1, context):
        list(session.generate([7 * at % 61 for at in range(length)], max_tokens=context))
    rng = np.random.default_rng(0)
    programs = [name for name, program in manifest.programs.items() if not program.derive]
    for turn in range(RUNS):
        for name, buffer in manifest.buffers.items():
            if buffer.kind == "input":
                session.write(name, edges(session, name, rng))
        env = {name: pick(rng, 1, var.max) for name, var in manifest.vars.items()}
        session.run(programs[turn % len(programs)], **env)
    for name in programs:
        if name.endswith("chain"):
            env = {name: pick(rng, 1, var.max) for name, var in manifest.vars.items()}
            session.repeat(name, 3 * context, [], **env)


def edges(session: Session, name: str, rng: np.random.Generator) -> np.ndarray:
    port = session._ports[name]
    most = session._limits(port.domain, session._upper).high
    values = rng.choice([0, int(most) // 2, int(most)], size=port.shape)
    return values.astype(port.dtype)


def pick(rng: np.random.Generator, low: int, high: int) -> int:
    return int(rng.choice([low, (low + high) // 2, high]))


def main() -> None:
    faulthandler.enable()
    CpuDevice.allocate = lambda _, nbytes: fenced(nbytes)
    CpuDevice.adopt = lambda _, data: copied(data)
    regions.carve = lambda sizes, _: {region: fenced(size) for region, size in sizes.items()}
    cache, *packages = map(Path, sys.argv[1:])
    for package in packages:
        with load(package, cache=cache, threads=2) as session:
            drive(session)


if __name__ == "__main__":
    main()
