"""Time a draw beside the arg-max of the same row, on one thread: `python scripts/bench_sampler.py`.

Rows look like a language model's: normal, a few tokens far ahead. Medians in microseconds, for the
most demanding set that this machine runs or the one that is named. `hopper`, with
`PYTHONPATH=src:tests`, has means of launches back to back, and a last column of 64 rows at once.
"""

import argparse
import ctypes
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bedstone.library.catalog import cpu_kernels
from bedstone.oracle.draw import Wish
from bedstone.spec.manifest import ScalarParam
from bedstone.target.cache import user_cache
from bedstone.target.cpu import runnable
from bedstone.target.features import read_features
from bedstone.target.hardware import read_sets
from bedstone.target.sources import read_sources
from bedstone.target.toolchain import compile_many, find_compiler

REPEATS = 41
GPU, LAUNCHES = "hopper", 200
VOCABULARIES = (49152, 151936)
EDITS, MOST = 8, 20
CASES = {
    "greedy": Wish(),
    "greedy, told 20": Wish(report=20),
    "temperature": Wish(0.8),
    "top_k 50": Wish(0.8, top_k=50),
    "top_p 0.95": Wish(0.8, top_p=0.95),
    "top_k 50, top_p 0.95": Wish(0.8, top_k=50, top_p=0.95),
    "min_p 0.05": Wish(0.8, min_p=0.05),
    "top_p 0.95, temperature 3": Wish(3.0, top_p=0.95),
    "top_p 0.95, temperature 100": Wish(100.0, top_p=0.95),
    "edited": Wish(0.8, top_p=0.95, edits=[(7, 1.2, -0.5)]),
    "restricted": Wish(0.8, top_p=0.95, allowed=range(0, 40000, 3)),
}

Args = Mapping[str, Any]


class Dim3(ctypes.Structure):
    """The place of a block, or the size of a grid."""

    _fields_ = (("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32))


def loaded(hardware: str, entry: str) -> Callable[..., object]:
    """An entry of a set's, compiled."""
    kernel = cpu_kernels().kernels[entry]
    unit = read_sources(read_sets()[hardware]).unit(kernel.source, kernel.defines)
    cache = user_cache() / "modules"
    (path,) = compile_many([unit], cache=cache, compiler=find_compiler())
    return ctypes.CDLL(str(path))[entry]


def words_of(entry: str, args: Args) -> ctypes.Array[ctypes.c_uint64]:
    """The argument vector of a call; arrays have to stay where they are."""
    params = cpu_kernels().kernels[entry].params
    return (ctypes.c_uint64 * len(params))(
        *(
            int(args[p.name]) if isinstance(p.type, ScalarParam) else args[p.name].ctypes.data
            for p in params
        )
    )


def timed(hardware: str, entry: str, args: Args) -> float:
    """The median microseconds of a call of one block."""
    function, words = loaded(hardware, entry), words_of(entry, args)
    room = np.zeros(1 << 18, np.uint8)
    shared = ctypes.c_void_p(room.ctypes.data + -room.ctypes.data % 64)
    first, grid = ctypes.byref(Dim3(0, 0, 0)), ctypes.byref(Dim3(1, 1, 1))
    taken = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        function(words, first, grid, shared)
        taken.append(time.perf_counter() - began)
    return 1e6 * float(np.median(taken))


def sample_args(logits: np.ndarray, wish: Wish) -> Args:
    """A draw of one row."""
    vocab, count = logits.shape[1], len(wish.edits)
    edits = np.zeros((3, 1, EDITS), np.float32)
    edits[:, 0, :count] = np.array(wish.edits, np.float32).reshape(count, 3).T
    bits = np.zeros(-(-vocab // 32) * 32, np.uint8)
    bits[list(wish.allowed or ())] = 1
    given = {
        "temperature": np.array([wish.temperature], np.float32),
        "top_k": np.array([wish.top_k], np.int32),
        "top_p": np.array([wish.top_p], np.float32),
        "min_p": np.array([wish.min_p], np.float32),
        "seed": np.array([wish.seed], np.int64),
    }
    return {
        "logits": logits, "position": np.array([5], np.int32), **given,
        "edits": np.array([count], np.int32), "edit_token": edits[0].astype(np.int32),
        "edit_scale": edits[1].copy(), "edit_add": edits[2].copy(),
        "restricted": np.array([wish.allowed is not None], np.int32),
        "allowed": np.packbits(bits, bitorder="little").view(np.int32)[None],
        "report": np.array([wish.report], np.int32), "drawn": np.zeros(1, np.int32),
        "scores": np.zeros((1, vocab), np.float32), "logprob": np.zeros(1, np.float32),
        "top_token": np.zeros((1, MOST), np.int32), "top_logprob": np.zeros((1, MOST), np.float32),
        **{f"to_{name}": value.copy() for name, value in given.items()},
        "rows": 1, "vocab": vocab, "most_edits": EDITS, "most": MOST,
    }  # fmt: skip


def argmax_args(logits: np.ndarray) -> Args:
    """The arg-max of one row."""
    ints = {name: np.zeros(1, np.int32) for name in ("next", "error", "token", "at", "to_slot")}
    return {
        "logits": logits, "position": np.array([5], np.int32),
        "pages": np.zeros((1, 2), np.int32), **ints, "run": np.zeros(64, np.int32), "rows": 1,
        "vocab": logits.shape[1], "page": 32, "pages_width": 2,
    }  # fmt: skip


def made_rows() -> list[np.ndarray]:
    """A row of logits of each vocabulary."""
    rng = np.random.default_rng(0)
    rows = [(rng.standard_normal((1, v)) * 2.5).astype(np.float32) for v in VOCABULARIES]
    for row in rows:
        row[0, rng.integers(0, row.shape[1], 12)] += np.linspace(4, 14, 12, dtype=np.float32)
    return rows


def timed_on_gpu(folder: Path) -> Callable[[str, Args], float]:
    """What gives the microseconds of a launch, by the harness of the tests."""
    from kernels.gpu_library import GpuLibrary  # noqa: PLC0415 - needs a GPU's driver

    library = GpuLibrary(GPU, folder, compiled=True)
    return lambda entry, args: 1e6 * library.timed(entry, LAUNCHES, **args)


def repeated(args: Args, rows: int) -> Args:
    """So many rows alike."""
    many = {n: np.concatenate([v] * rows) for n, v in args.items() if isinstance(v, np.ndarray)}
    return {**args, **many, "rows": rows}


def main() -> None:
    """Print a table."""
    sets = runnable(read_sets(), read_features())
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hardware", nargs="?", choices=(*sets, GPU), default=sets[0])
    hardware, rows = parser.parse_args().hardware, made_rows()
    on_gpu = hardware == GPU
    taken = timed_on_gpu(user_cache() / "modules") if on_gpu else partial(timed, hardware)
    print(f"{hardware:30}" + "".join(f"{vocab:10}" for vocab in VOCABULARIES))
    line = "".join(f"{taken('argmax', argmax_args(row)):10.1f}" for row in rows)
    print(f"{'argmax':30}{line}")
    for label, wish in CASES.items():
        line = "".join(f"{taken('sample', sample_args(row, wish)):10.1f}" for row in rows)
        if on_gpu:
            many = repeated(sample_args(rows[-1], wish), 64)
            line += f"{taken('sample_rows', many):10.1f}"
        print(f"{label:30}{line}")


if __name__ == "__main__":
    main()
