"""Time a draw beside the arg-max of the same row, on one thread: `python scripts/bench_sampler.py`.

Rows look like a language model's: normal, a few tokens far ahead. Medians in microseconds.
"""

import ctypes
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from bedstone.library.catalog import cpu_kernels
from bedstone.oracle.draw import Wish
from bedstone.target.cache import user_cache
from bedstone.target.toolchain import find_compiler
from kernels.harness import AVAILABLE, Dim3, Library, pack, poisoned_scratch, shared_bytes
from kernels.test_sample import EDITS, MOST, edit_rows, settings, words

REPEATS = 41
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
    "restricted": Wish(0.8, top_p=0.95, allowed=list(range(0, 40000, 3))),
}


def timed(library: Library, entry: str, args: dict) -> float:
    """The median microseconds of a call."""
    kernel = cpu_kernels().kernels[entry]
    library.load(frozenset({kernel.module}))
    function = library.loaded[kernel.module][entry]
    packed, guards = pack(kernel, args)
    scratch, start = poisoned_scratch(shared_bytes(kernel.shared, args))
    one = ctypes.byref(Dim3(0, 0, 0)), ctypes.byref(Dim3(1, 1, 1)), ctypes.c_void_p(start)
    taken = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        function(packed, *one)
        taken.append(time.perf_counter() - began)
    del scratch, guards
    return 1e6 * float(np.median(taken))


def sample_args(logits: np.ndarray, wish: Wish) -> dict:
    """A call of one row."""
    vocab, given = logits.shape[1], settings([wish])
    return {
        "logits": logits, "position": np.array([5], np.int32), **given, **edit_rows([wish]),
        "edits": np.array([len(wish.edits)], np.int32),
        "restricted": np.array([wish.allowed is not None], np.int32),
        "allowed": words(vocab, wish)[None], "report": np.array([wish.report], np.int32),
        "drawn": np.zeros(1, np.int32), "scores": np.zeros((1, vocab), np.float32),
        "logprob": np.zeros(1, np.float32), "top_token": np.zeros((1, MOST), np.int32),
        "top_logprob": np.zeros((1, MOST), np.float32),
        **{f"to_{name}": value.copy() for name, value in given.items()},
        "rows": 1, "vocab": vocab, "most_edits": EDITS, "most": MOST,
    }  # fmt: skip


def argmax_args(logits: np.ndarray) -> dict:
    """A call of one row."""
    ints = {name: np.zeros(1, np.int32) for name in ("next", "error", "token", "at", "to_slot")}
    return {
        "logits": logits, "position": np.array([5], np.int32),
        "pages": np.zeros((1, 2), np.int32), **ints, "run": np.zeros(64, np.int32), "rows": 1,
        "vocab": logits.shape[1], "page": 32, "pages_width": 2,
    }  # fmt: skip


def main() -> None:
    """Print a table for the most demanding set that this machine runs."""
    name = sys.argv[1] if len(sys.argv) > 1 else AVAILABLE[-1]
    library = Library(name, find_compiler(), user_cache() / "modules", {})
    rng = np.random.default_rng(0)
    print(f"{name:30}{'49152':>10}{'151936':>10}")
    rows = [(rng.standard_normal((1, v)) * 2.5).astype(np.float32) for v in (49152, 151936)]
    for row in rows:
        row[0, rng.integers(0, row.shape[1], 12)] += np.linspace(4, 14, 12, dtype=np.float32)
    line = "".join(f"{timed(library, 'argmax', argmax_args(row)):10.1f}" for row in rows)
    print(f"{'argmax':30}{line}")
    for label, wish in CASES.items():
        line = "".join(f"{timed(library, 'sample', sample_args(row, wish)):10.1f}" for row in rows)
        print(f"{label:30}{line}")


if __name__ == "__main__":
    main()
