"""Runs one package under this runtime and under the reference runtime, and compares bytes.

    python3 scripts/interop_kern.py PACKAGE [WEIGHTS]     (needs kern-llm 0.3.1, torch and a GPU)

Both get the same inputs, drawn within what the manifest declares, and run the same programs with
the same vars, one after another; rows lie where their positions do. Every output, and every buffer
a caller may write, has to hold the same bytes after each. Exit 1 where they differ. Without a
package the toy model of the tests is compiled and used.
"""

import ctypes
import json
import math
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from bedstone.runtime.arrays import numpy_dtype
from bedstone.runtime.domain import limits_of
from bedstone.runtime.load import Parts, load, read_parts
from bedstone.runtime.memory import extents, upper_bounds
from bedstone.runtime.session import Session
from bedstone.spec.codec import serialize
from bedstone.spec.expr import evaluate
from bedstone.spec.manifest import Buffer, Manifest, Module, State

ROUNDS = 6

Given = dict[str, "np.ndarray[tuple[int, ...], np.dtype[np.generic]]"]
"""A value for every buffer that a caller writes."""


class Reference:
    """The reference runtime behind the calls used here."""

    def __init__(self, parts: Parts, weights: list[str], scratch: Path) -> None:
        import kern  # noqa: PLC0415 - the library under comparison, not a dependency

        manifest = scratch / "manifest.json"
        manifest.write_text(serialize(parts.manifest))
        kernels = str(parts.kernels) if parts.kernels else None
        self._runtime = kern.Runtime(str(manifest), kernels, weights, 0)
        self._driver = ctypes.CDLL("libcuda.so.1")
        # those it leaves to its caller
        for name, program in sorted(parts.manifest.programs.items()):
            if program.once:
                self.run(name, dict.fromkeys(parts.manifest.vars, 1))

    def write(self, name: str, data: bytes) -> None:
        """Copy to the front of a buffer."""
        address, size = self._runtime.region(name)
        if len(data) > size:
            raise ValueError(f"`{name}` has {size} bytes, {len(data)} were given")
        self._check(self._driver.cuMemcpyHtoD_v2(ctypes.c_uint64(address), data, len(data)))

    def read(self, name: str) -> bytes:
        """A buffer's bytes."""
        address, size = self._runtime.region(name)
        data = ctypes.create_string_buffer(size)
        self._check(self._driver.cuMemcpyDtoH_v2(data, ctypes.c_uint64(address), size))
        return data.raw

    def run(self, program: str, env: dict[str, int]) -> None:
        """Run a program and wait."""
        self._runtime.run(program, env)

    def _check(self, status: int) -> None:
        if status:
            raise RuntimeError(f"CUDA error {status}")


def drawn(
    buffer: Buffer, session: Session, rng: np.random.Generator
) -> "np.ndarray[tuple[int, ...], np.dtype[np.generic]]":
    """Values for an input within its domain; small ones where it declares none.

    No two are alike where there are enough: rows of one step that go to one place would race.
    """
    manifest = session.manifest
    upper = upper_bounds(manifest)
    shape = extents(buffer.shape, upper)
    dtype = numpy_dtype(buffer.dtype)
    if dtype.kind in {"f", "V"}:
        return rng.standard_normal(shape).astype(np.float32).astype(dtype)
    low, high = 0, 3
    if buffer.domain is not None:
        limits = limits_of(buffer.domain, manifest, session.capacity, upper)
        low = int(limits.low or 0)
        high = int(limits.high if limits.high is not None else low + 3)
    span, count = high - low + 1, math.prod(shape)
    values = low + rng.choice(span, count, replace=count > span).reshape(shape)
    return (np.sort(values) if buffer.domain and buffer.domain.monotone else values).astype(dtype)


def seat(manifest: Manifest, program: str, env: dict[str, int], given: Given) -> None:
    """Give rows of a paged model the slots of their positions, on pages of their sequence's own.

    Pages stay from step to step: rows that read what another row of their step writes would race.
    """
    paged = {n: b.domain.stride for n, b in manifest.buffers.items() if b.domain is not None}
    table, page = max(paged.items(), key=lambda each: each[1], default=("", 1))
    if page == 1:
        return
    sequences, width = given[table].shape
    given[table] = np.arange(sequences * width, dtype=np.int32).reshape(sequences, width)
    batch = manifest.programs[program].batch
    filled = {buffer.fill: name for name, buffer in manifest.buffers.items()}
    if batch is None or not {"position", "slot"} <= filled.keys():
        # its rows come from the step before, or lie nowhere
        return
    position, slot = given[filled["position"]], given[filled["slot"]]
    each = evaluate(batch.rows, env)
    at = np.arange(len(position))
    row = np.minimum(at // each, sequences - 1)
    position[:] = position[row] % max(1, width * page // 2 - each) + at % each
    slot[:] = given[table][row, position // page] * page + position % page


def steps(manifest: Manifest, session: Session, rng: np.random.Generator) -> Iterator[tuple]:
    """Programs a caller drives, each round's with the same assignment of the vars they read.

    A chain goes on with as many rows as the step before it had.
    """
    for _ in range(ROUNDS):
        every = {name: int(rng.integers(1, var.max + 1)) for name, var in manifest.vars.items()}
        for name, program in sorted(manifest.programs.items()):
            if not (program.once or program.derive):
                yield name, {var: every[var] for var in session.reads(name)}


def compare(parts: Parts, weights: list[str], scratch: Path) -> list[str]:
    """What differs, program by program."""
    rng = np.random.default_rng(7)
    differences: list[str] = []
    manifest = parts.manifest
    options = {"checkpoint": weights[0]} if weights else {}
    many = max((var.max for var in manifest.vars.values() if var.axis == "groups"), default=1)
    with load(parts, device="cuda", sequences=many, **options) as session:
        reference = Reference(parts, weights, scratch)
        written = [n for n, b in manifest.buffers.items() if b.kind in {"input", "inout"}]
        read = [n for n, b in manifest.buffers.items() if b.kind in {"output", "inout"}]
        for program, env in steps(manifest, session, rng):
            given = {name: drawn(manifest.buffers[name], session, rng) for name in written}
            seat(manifest, program, env, given)
            for name, data in given.items():
                session.write(name, data)
                reference.write(name, data.tobytes())
            session.run(program, **env)
            reference.run(program, {**dict.fromkeys(manifest.vars, 1), **env})
            differences += [
                f"{program} {env}: `{name}`"
                for name in read
                if session.read(name).tobytes() != reference.read(name)
            ]
    return differences


def toy(folder: Path) -> Parts:
    """The toy model of the tests, compiled for this GPU."""
    root = Path(__file__).resolve().parent.parent / "tests"
    sys.path.insert(0, str(root))
    from gpu_kernels import compiled, package  # noqa: PLC0415 - only where there is a GPU
    from runtime_toy import toy_manifest  # noqa: PLC0415 - as above

    source = (root / "gpu" / "toy.cu").read_text()
    # the reference maps states in chunks, and reserves less than one for a state this small
    states = {"kv": State(bytes_per_token=2**21)}

    def manifest(table: dict[str, Module]) -> Manifest:
        return replace(toy_manifest("0" * 64), modules=table, states=states)

    return package(folder, manifest, toy=compiled(source, "sm_90a"))


def main() -> int:
    """Compare what the command line names."""
    with tempfile.TemporaryDirectory() as scratch:
        parts = read_parts(Path(sys.argv[1])) if len(sys.argv) > 1 else toy(Path(scratch))
        differences = compare(parts, sys.argv[2:], Path(scratch))
    print(json.dumps({"model": parts.manifest.model, "differences": differences}, indent=1))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
