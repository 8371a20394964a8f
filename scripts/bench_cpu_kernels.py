"""Rates of the CPU matrix products on this machine: one row in GB/s, many rows in GFLOP/s.

Weights are larger than the caches. Each rate is the best of a few rounds; set and thread count
alternate inside a round, and a plain read of the same bytes goes along as the limit.
"""

import argparse
import ctypes
import itertools
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bedstone.library.catalog import cpu_kernels
from bedstone.library.kernel import Kernel
from bedstone.spec.dtype import FORMATS
from bedstone.spec.manifest import ScalarParam
from bedstone.target.cpu import runnable
from bedstone.target.features import read_features
from bedstone.target.hardware import read_sets
from bedstone.target.sources import read_sources
from bedstone.target.toolchain import Unit, compile_many, find_compiler

DRIVER = """
#include <abi.h>
typedef void kernel(const bs_arg *, const bs_dim3 *, const bs_dim3 *, void *);
void drive(kernel *run, const bs_arg *args, unsigned from, unsigned to, unsigned x, void *shared)
{
    bs_dim3 grid = {x, 1, 1};
    for (unsigned i = from; i < to; i++) {
        bs_dim3 block = {i, 0, 0};
        run(args, &block, &grid, shared);
    }
}
BS_KERNEL(read, "")
{
    const uint64_t *p = args[0].ptr;
    size_t each = (size_t)args[1].i64 / grid->x / 64;
    uint64_t sum[8] = {0};
    p += each * 8 * block->x;
    for (size_t i = 0; i < each; i++)
        for (int j = 0; j < 8; j++) sum[j] += p[8 * i + (size_t)j];
    for (int j = 1; j < 8; j++) sum[0] += sum[j];
    *(volatile uint64_t *)shared = sum[0];
}
"""


@dataclass
class Case:
    """One launch to time: `call` runs a range of its blocks; `work` is bytes or operations."""

    label: str
    unit: str
    call: Callable[[int, int], None]
    blocks: int
    work: float


class Bench:
    """Compiled kernels and the loop that runs their blocks."""

    def __init__(self, cache: Path) -> None:
        """Compile the loop; `cache` takes every compiled file."""
        self.cache, self.compiler, self.kept = cache, find_compiler(), []
        source = cache / "driver.c"
        source.write_text(DRIVER)
        self.driver = self.compiled(
            Unit((source,), ("-O3",), include=read_sources(read_sets()["cpu-generic"]).include)
        )

    def compiled(self, unit: Unit) -> ctypes.CDLL:
        """The loaded shared object of `unit`."""
        (path,) = compile_many([unit], cache=self.cache, compiler=self.compiler)
        return ctypes.CDLL(str(path))

    def case(
        self, label: str, function: object, args: ctypes.Array, blocks: int, work: tuple[float, str]
    ) -> Case:
        """A launch of `function`; each of two threads has its own scratch."""
        scratch = [np.empty(240_000, np.uint8) for _ in range(2)]

        def call(begin: int, end: int) -> None:
            memory = (scratch[begin > 0].ctypes.data + 63) & ~63
            self.driver.drive(function, args, begin, end, blocks, ctypes.c_void_p(memory))

        return Case(label, work[1], call, blocks, work[0])

    def product(self, entry: str, hardware: str, rows: int, k: int, n: int) -> Case:
        """A matrix product; weights in GB/s where there is one row, else operations."""
        kernel = cpu_kernels().get(entry)
        if kernel is None:
            raise SystemExit(f"no kernel `{entry}`")
        library = self.compiled(
            read_sources(read_sets()[hardware]).unit(kernel.source, kernel.defines)
        )
        buffers, size = arguments(kernel, rows, k, n)
        self.kept.append(buffers)
        sizes = {"rows": rows, "k": k, "n": n}
        work = (size, "GB/s") if rows == 1 else (2.0 * rows * k * n, "GFLOP/s")
        label = f"{entry:18} {hardware:14} rows {rows:4}"
        return self.case(label, library[entry], packed(kernel, buffers, sizes), -(-n // 32), work)

    def read(self, size: int) -> Case:
        """A plain read of `size` bytes: the limit of a one-row product."""
        memory = np.ones(size, np.uint8)
        self.kept.append(memory)
        words = (ctypes.c_uint64 * 2)(memory.ctypes.data, size)
        return self.case(f"{'read':43}", self.driver.read, words, 64, (size, "GB/s"))


def arguments(kernel: Kernel, rows: int, k: int, n: int) -> tuple[dict[str, np.ndarray], int]:
    """Buffers by param name, and the bytes of weights."""
    name = kernel.module.removeprefix("linear-")
    fmt = next(f for f in FORMATS.values() if f.name == name)
    rng = np.random.default_rng(0)
    x = rng.integers(1, 100, rows * k).astype(np.float32)
    buffers = {
        "w": rng.integers(0, 100, n * fmt.row_bytes(k) + 64, np.uint8),
        "x": x,
        "xq": x.astype(np.int8),
        "xs": x[: rows * k // 32] / 1000,
        "xz": np.ones(rows * k // 32, np.int32),
        "y": np.empty(rows * n, np.float32),
    }
    return buffers, n * fmt.row_bytes(k)


def packed(kernel: Kernel, buffers: dict[str, np.ndarray], sizes: dict[str, int]) -> ctypes.Array:
    """The kernel's argument vector."""
    words = [
        sizes[p.name] if isinstance(p.type, ScalarParam) else buffers[p.name].ctypes.data
        for p in kernel.params
    ]
    return (ctypes.c_uint64 * len(words))(*words)


def spread(case: Case, threads: int) -> float:
    """Seconds for all blocks, each thread a contiguous share."""
    edges = [case.blocks * i // threads for i in range(threads + 1)]
    shares = itertools.pairwise(edges)
    workers = [threading.Thread(target=case.call, args=share) for share in shares]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - start


def measure(options: argparse.Namespace, cache: Path) -> None:
    """Time every case in turn, round after round; print the best rate of each."""
    bench = Bench(cache)
    sets = runnable(read_sets(), read_features())
    cases = [bench.read(64 << 20)] + [
        bench.product(entry, hardware, rows, options.k, options.n // (1 if rows == 1 else 8))
        for entry, hardware, rows in itertools.product(options.entries, sets, options.rows)
    ]
    best = {(case.label, threads): 0.0 for case in cases for threads in (1, 2)}
    for _ in range(options.rounds):
        for case, threads in itertools.product(cases, (1, 2)):
            rate = case.work / spread(case, threads) / 1e9
            best[case.label, threads] = max(best[case.label, threads], rate)
    for case, threads in itertools.product(cases, (1, 2)):
        print(f"{case.label} threads {threads} {best[case.label, threads]:8.1f} {case.unit}")


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    entries = ["linear_q_q4_1", "linear_q4_1", "linear_q_q8_0"]
    parser.add_argument("entries", nargs="*", default=entries, help="entries of the linear family")
    parser.add_argument("--k", type=int, default=1536)
    parser.add_argument("--n", type=int, default=65536)
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 128])
    parser.add_argument("--rounds", type=int, default=5)
    with tempfile.TemporaryDirectory() as folder:
        measure(parser.parse_args(), Path(folder))


if __name__ == "__main__":
    main()
