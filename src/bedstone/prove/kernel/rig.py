"""A manifest of one call around an op, so that it runs on any device on inputs that were made.

Memory is as large as what lies in it, with guard bytes behind that nobody may change.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bedstone.prove.kernel.identify import Known
from bedstone.runtime.load import DeviceName, Parts, load
from bedstone.runtime.session import Session
from bedstone.spec.dtype import DTYPE_BYTES
from bedstone.spec.manifest import (
    Arg,
    BufArg,
    Buffer,
    BufferParam,
    Call,
    Manifest,
    Program,
    State,
    StateArg,
)
from bedstone.verify.binding import writes

GUARD = 256
"""Bytes behind each piece of memory."""

_GUARDED, _UNWRITTEN = 0xA5, 0xFF
_PROGRAM = "call"
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Given:
    """A call's memory: bytes by parameter, and how many an output takes that is not among them."""

    inputs: Mapping[str, Bytes]
    outputs: Mapping[str, int]
    env: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Left:
    """What a call left in what it writes, and the pieces it changed and must not."""

    outputs: Mapping[str, Bytes]
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rig:
    """The manifest of ops, where its modules are, and what runs them."""

    manifest: Manifest
    kernels: Path | None
    device: DeviceName
    cache: Path
    threads: int | None

    def run(self, known: Known, given: Given) -> Left:
        """Call the op once."""
        parts = Parts(rigged(known, self.manifest, given), self.kernels)
        session = load(parts, device=self.device, cache=self.cache, threads=self.threads)
        with session:
            for name, data in _filled(given).items():
                _write(session, name, data)
            session.run(_PROGRAM, **given.env)
            return _left(known, given, {n: _read(session, n) for n in known.memory})


def rigged(known: Known, manifest: Manifest, given: Given) -> Manifest:
    """The manifest of one call with memory of these sizes."""
    sizes = {name: len(data) for name, data in _filled(given).items()}
    buffers: dict[str, Buffer] = {}
    states: dict[str, State] = {}
    args = _scalars(known, manifest)
    for name, index in known.memory.items():
        kind = known.op.params[index]
        if isinstance(kind, BufferParam):
            count = sizes[name] // DTYPE_BYTES[kind.dtype]
            buffers[name] = Buffer(kind.dtype, (count,), "inout")
            args[index] = BufArg(name)
        else:
            states[name] = State(bytes=sizes[name])
            args[index] = StateArg(name)
    launch = known.op.impl.launches[0]
    modules = {n: m for n, m in manifest.modules.items() if n == getattr(launch, "module", None)}
    call = Call(known.name, tuple(args[index] for index in range(len(known.op.params))))
    return Manifest(
        model="kernel",
        buffers=buffers,
        modules=modules,
        ops={known.name: known.op},
        programs={_PROGRAM: Program((call,))},
        vars={name: manifest.vars[name] for name in given.env},
        states=states,
    )


def _scalars(known: Known, manifest: Manifest) -> dict[int, Arg]:
    """The arguments by value, as the first call of the op has them."""
    calls = (c for p in manifest.programs.values() for c in p.calls if c.op == known.name)
    args = next(calls).args
    return {at: arg for at, arg in enumerate(args) if not isinstance(arg, BufArg | StateArg)}


def _filled(given: Given) -> dict[str, Bytes]:
    """Every piece of memory as it is before the call."""
    poison = {n: np.full(size, _UNWRITTEN, np.uint8) for n, size in given.outputs.items()}
    return {
        name: np.concatenate((data, np.full(GUARD + -data.size % GUARD, _GUARDED, np.uint8)))
        for name, data in {**poison, **given.inputs}.items()
    }


def _left(known: Known, given: Given, found: Mapping[str, Bytes]) -> Left:
    outputs: dict[str, Bytes] = {}
    faults: list[str] = []
    for name, before in _filled(given).items():
        size = given.inputs[name].size if name in given.inputs else given.outputs[name]
        data = found[name]
        if not np.array_equal(data[size:], before[size:]):
            faults.append(f"wrote behind `{name}`")
        if writes(known.op.params[known.memory[name]]):
            outputs[name] = data[:size]
        elif not np.array_equal(data[:size], before[:size]):
            faults.append(f"changed its input `{name}`")
    return Left(outputs, tuple(faults))


def _write(session: Session, name: str, data: Bytes) -> None:
    if name in session.manifest.states:
        session.fill(name, 0, data)
    else:
        session.write(name, data.tobytes())


def _read(session: Session, name: str) -> Bytes:
    return session.region(name)
