"""What the machine itself can do, measured in the run that is held against it.

A GPU copies memory, and multiplies bfloat16 matrices by the vendor's library, as programs of the
runtime: over random numbers, since products of zeros are faster. Of a CPU only memory is measured.
"""

import hashlib
from collections.abc import Callable
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path
from time import perf_counter
from typing import Literal

from bedstone.bench.rates import Rates
from bedstone.checkpoint.drawn import DrawnTensors
from bedstone.errors import BedstoneError
from bedstone.runtime.load import Parts, load
from bedstone.runtime.session import Session
from bedstone.spec.manifest import (
    I32,
    BufArg,
    Buffer,
    BufferParam,
    Call,
    ExternLaunch,
    Impl,
    KernelLaunch,
    Manifest,
    Module,
    Op,
    Program,
    ScalarParam,
    Segment,
)
from bedstone.target.bandwidth import measure_bandwidth

DeviceName = Literal["cpu", "cuda"]

SIDE = 8192
"""Rows and columns of the matrices."""

_TIMES = 8
"""Matrices of that size in what is copied: a copy takes far longer than the step between two."""

_BLOCK_COPIES = 16384
_COPIES, _PRODUCTS, _SAMPLES = 20, 5, 5


def measure_machine(
    device: DeviceName, clock: Callable[[], float] = perf_counter, side: int = SIDE
) -> Rates:
    """Measure a device of this machine, in a second."""
    if device == "cpu":
        return Rates(measure_bandwidth(clock=clock).bytes_per_second)
    with as_file(files("bedstone.bench") / "copy.ptx") as path, ExitStack() as held:
        weights = DrawnTensors.of(a=(side, side), w=(side, side))
        session = held.enter_context(
            load(Parts(copying(path, side), path.parent), device=device, checkpoint=weights)
        )
        bandwidth = 2 * _TIMES * 2 * side**2 / _best(session, "copy", _COPIES, clock)
        try:
            products = held.enter_context(
                load(Parts(multiplying(side)), device=device, checkpoint=weights)
            )
            taken = _best(products, "multiply", _PRODUCTS, clock)
        except BedstoneError as error:  # a machine without the vendor's library still has memory
            return Rates(bandwidth, note=str(error))
    return Rates(bandwidth, 2 * side**3 / taken)


def copying(module: Path, side: int) -> Manifest:
    """A program that copies a weight, one matrix several times over."""
    memory = BufferParam("in", "bf16"), BufferParam("out", "bf16")
    shape = (_TIMES * side, side)
    grid = (_TIMES * 2 * side**2 // _BLOCK_COPIES, 1, 1)
    launch = KernelLaunch("copy", "bedstone_copy", (256, 1, 1), grid)
    return Manifest(
        model="copy",
        buffers={
            "x": Buffer("bf16", shape, "weight", bind=(Segment("a"),) * _TIMES),
            "y": Buffer("bf16", shape, "output"),
        },
        modules={"copy": Module(module.name, hashlib.sha256(module.read_bytes()).hexdigest())},
        ops={"copy": Op(memory, Impl((launch,)))},
        programs={"copy": Program((Call("copy", (BufArg("x"), BufArg("y"))),))},
    )


def multiplying(side: int) -> Manifest:
    """A program that multiplies two square matrices."""
    matrix = BufferParam("in", "bf16")
    size = ScalarParam("i32")
    params = (matrix, matrix, BufferParam("out", "bf16"), size, size, size)
    sizes = [I32(side)] * 3
    call = Call("multiply", (BufArg("a"), BufArg("w"), BufArg("c"), *sizes))
    shape = (side, side)
    return Manifest(
        model="multiply",
        buffers={
            **{n: Buffer("bf16", shape, "weight", bind=(Segment(n),)) for n in ("a", "w")},
            "c": Buffer("bf16", shape, "output"),
        },
        modules={},
        ops={"multiply": Op(params, Impl((ExternLaunch("extern:cublaslt_bf16_tn"),)))},
        programs={"multiply": Program((call,))},
    )


def _best(session: Session, program: str, times: int, clock: Callable[[], float]) -> float:
    """Seconds of a run: of several samples the shortest, after one that is not counted."""
    session.start(program, times, ()).wait()
    taken = []
    for _ in range(_SAMPLES):
        began = clock()
        session.start(program, times, ()).wait()
        taken.append((clock() - began) / times)
    return min(taken)
