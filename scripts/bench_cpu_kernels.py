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
from pathlib import Path

import numpy as np

from bedstone.library.catalog import cpu_kernels
from bedstone.library.kernel import Kernel
from bedstone.spec.dtype import FORMATS
from bedstone.spec.manifest import ScalarParam
from bedstone.target.cpu import HARDWARE_SETS, read_features
from bedstone.target.hardware import read_hardware
from bedstone.target.toolchain import compile_shared, find_compiler

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
DTYPES = {"f32": np.float32, "i8": np.int8, "i32": np.int32, "u8": np.uint8}


def arguments(kernel: Kernel, rows: int, k: int, n: int) -> tuple[dict[str, np.ndarray], int]:
    """Buffers by param name, and the bytes of weights."""
    name = kernel.module.removeprefix("linear-")
    fmt = next(f for f in FORMATS.values() if f.name == name)
    rng = np.random.default_rng(0)
    w = rng.integers(0, 100, n * fmt.row_bytes(k) + 64, np.uint8)
    x = rng.integers(1, 100, rows * k).astype(np.float32)
    buffers = {
        "w": w, "x": x, "xq": x.astype(np.int8), "xs": x[: rows * k // 32] / 1000,
        "xz": np.ones(rows * k // 32, np.int32), "y": np.empty(rows * n, np.float32),
    }  # fmt: skip
    return buffers, n * fmt.row_bytes(k)


def packed(kernel: Kernel, buffers: dict[str, np.ndarray], sizes: dict[str, int]) -> ctypes.Array:
    words = [
        sizes[p.name] if isinstance(p.type, ScalarParam) else buffers[p.name].ctypes.data
        for p in kernel.params
    ]
    return (ctypes.c_uint64 * len(words))(*words)


def spread(call: Callable[[int, int], None], blocks: int, threads: int) -> float:
    """Seconds for all blocks, each thread a contiguous share."""
    edges = [blocks * i // threads for i in range(threads + 1)]
    workers = [threading.Thread(target=call, args=pair) for pair in itertools.pairwise(edges)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - start


def bench(options: argparse.Namespace, cache: Path) -> None:
    compiler = find_compiler()
    driver_source = cache / "driver.c"
    driver_source.write_text(DRIVER)
    folders = read_hardware("cpu-generic").folders
    flags = ["-O3", "-mavx2"] if "avx2" in read_features() else ["-O3"]
    path = compile_shared(
        [driver_source], flags=flags, include=folders, cache=cache, compiler=compiler
    )
    driver = ctypes.CDLL(str(path))
    sets = [name for name, needed in HARDWARE_SETS if needed <= read_features()]
    runs: dict[tuple[str, str, int], tuple[Callable[[int, int], None], int, float]] = {}
    keep = []

    def add(
        label: tuple[str, str, int], function: object, args: ctypes.Array, blocks: int, work: float
    ) -> None:
        scratch = [np.empty(240_000, np.uint8) for _ in range(2)]
        keep.append((scratch, args))

        def call(begin: int, end: int) -> None:
            memory = scratch[begin > 0].ctypes.data + 63 & ~63
            driver.drive(function, args, begin, end, blocks, ctypes.c_void_p(memory))

        runs[label] = (call, blocks, work)

    for entry, hardware, rows in itertools.product(options.entries, sets, options.rows):
        kernel = cpu_kernels().get(entry)
        if kernel is None:
            raise SystemExit(f"no kernel `{entry}`")
        unit = read_hardware(hardware).unit(kernel.source, kernel.defines)
        built = compile_shared(
            unit.sources, flags=unit.flags, defines=unit.defines, include=unit.include,
            cache=cache, compiler=compiler,
        )  # fmt: skip
        n = options.n if rows == 1 else options.n // 8
        buffers, size = arguments(kernel, rows, options.k, n)
        sizes = {"rows": rows, "k": options.k, "n": n}
        keep.append((buffers, ctypes.CDLL(str(built))))
        work = size if rows == 1 else 2.0 * rows * options.k * n
        add(
            (entry, hardware, rows),
            keep[-1][1][entry],
            packed(kernel, buffers, sizes),
            -(-n // 32),
            work,
        )
        if rows == 1 and ("read", "", 1) not in runs:
            words = (ctypes.c_uint64 * 2)(buffers["w"].ctypes.data, size)
            add(("read", "", 1), driver.read, words, 64, size)
    best: dict[tuple, float] = {}
    for _ in range(options.rounds):
        for label, threads in itertools.product(runs, (1, 2)):
            call, blocks, work = runs[label]
            seconds = spread(call, blocks, threads)
            best[label, threads] = max(best.get((label, threads), 0), work / seconds / 1e9)
    for (label, threads), rate in best.items():
        unit_name = "GB/s" if label[2] == 1 else "GFLOP/s"
        print(
            f"{label[0]:18} {label[1]:14} rows {label[2]:4} threads {threads}  {rate:7.1f} {unit_name}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "entries", nargs="*", default=["linear_q_q4_1", "linear_q4_1", "linear_q_q8_0"]
    )
    parser.add_argument("--k", type=int, default=1536)
    parser.add_argument("--n", type=int, default=65536)
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 128])
    parser.add_argument("--rounds", type=int, default=5)
    with tempfile.TemporaryDirectory() as folder:
        bench(parser.parse_args(), Path(folder))


if __name__ == "__main__":
    main()
