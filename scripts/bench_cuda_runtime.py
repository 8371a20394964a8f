"""What the CUDA runtime itself costs: step boundaries, launches, uploads, loading. Prints JSON.

    PYTHONPATH=src:tests python3 scripts/bench_cuda_runtime.py > measurements/DATE-MACHINE.json

Kernels spin for a known time, so what is left of a step is the runtime's.
"""

import json
import statistics
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np

from bedstone.runtime.cuda.bindings import open_driver
from bedstone.runtime.cuda.device import CudaDevice
from bedstone.runtime.cuda.upload import Uploader
from bedstone.runtime.device import Stored, Upload
from bedstone.runtime.load import Parts, load
from bedstone.runtime.session import Session
from bedstone.spec.manifest import (
    I32,
    I64,
    Batch,
    BufArg,
    Buffer,
    BufferParam,
    Call,
    Impl,
    KernelLaunch,
    Manifest,
    Op,
    Program,
    ScalarParam,
    Var,
    VarArg,
)
from gpu_kernels import compiled, package

SPIN_NS = 40_000
STEPS = 2000
LAUNCHES = 300
UPLOAD_BYTES = 8 * 2**30
KERNELS = """
__device__ long long now() {
  long long t; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)); return t;
}
extern "C" __global__ void spin(long long *log, int *count, int *next, long long ns) {
  long long begin = now();
  while (now() - begin < ns) {}
  log[2 * *count % 8192] = begin;
  log[(2 * *count + 1) % 8192] = now();
  *next = ++*count;
}
extern "C" __global__ void small(int *next, int value) { if (threadIdx.x == 0) *next = value; }
"""


def manifest(table: dict) -> Manifest:
    """Programs of one spinning kernel, and of many small ones with and without vars."""
    i64, i32 = BufferParam("inout", "i64"), BufferParam("inout", "i32")
    out = BufferParam("out", "i32")
    spin = Op(
        (i64, i32, out, ScalarParam("i64")),
        Impl((KernelLaunch("m", "spin", (1, 1, 1), (1, 1, 1)),)),
    )
    small = Op(
        (out, ScalarParam("i32")), Impl((KernelLaunch("m", "small", (128, 1, 1), (132, 1, 1)),))
    )
    step = Call("spin", (BufArg("log"), BufArg("count"), BufArg("next"), I64(SPIN_NS)))
    fixed = Call("small", (BufArg("next"), I32(1)))
    variable = Call("small", (BufArg("next"), VarArg("n")))
    return Manifest(
        "bench",
        {
            "log": Buffer("i64", (8192,), "inout"),
            "count": Buffer("i32", (1,), "inout"),
            "next": Buffer("i32", (1,), "output"),
        },
        table,
        {"spin": spin, "small": small},
        {
            "step": Program((step,)),
            "ten": Program((step,) * 10),
            "graph": Program((fixed,) * LAUNCHES, Batch(1, 1), graph=True),
            "list": Program((variable,) * LAUNCHES),
        },
        vars={"n": Var(9)},
    )


def median_us(call: Callable[[], object], times: int) -> float:
    """Median time of a call in microseconds, after three that are not counted."""
    for _ in range(3):
        call()
    taken = []
    for _ in range(times):
        begin = perf_counter()
        call()
        taken.append(perf_counter() - begin)
    return statistics.median(taken) * 1e6


def boundaries(session: Session) -> dict[str, float]:
    """Time on the device from the end of a step's kernel to the start of the next step's."""
    session.repeat("step", 50, ["next"])
    session.write("count", np.zeros(1, np.int32))
    begin = perf_counter()
    session.repeat("step", STEPS, ["next"])
    period = (perf_counter() - begin) / STEPS * 1e6
    log = session.read("log")[: 2 * STEPS].reshape(-1, 2)
    gaps = (log[1:, 0] - log[:-1, 1]) / 1e3
    begin = perf_counter()
    session.repeat("ten", STEPS // 10, ["next"])
    within = (perf_counter() - begin) / STEPS * 1e6
    return {
        "step_period_us": period,
        "gap_median_us": float(np.median(gaps)),
        "gap_p99_us": float(np.quantile(gaps, 0.99)),
        "period_of_the_same_kernel_within_a_graph_us": within,
        "boundary_over_a_node_us": period - within,
    }


def streamed(session: Session) -> dict[str, float]:
    """As above where each step is started by itself and read behind the device, four ahead."""
    session.write("count", np.zeros(1, np.int32))
    runs = [session.start("step", 1, ["next"]) for _ in range(4)]
    host = []
    for _ in range(STEPS):
        begin = perf_counter()
        runs.append(session.start("step", 1, ["next"]))
        host.append(perf_counter() - begin)
        runs.pop(0).wait()
    for run in runs:
        run.wait()
    log = session.read("log")[: 2 * STEPS].reshape(-1, 2)
    gaps = (log[1:, 0] - log[:-1, 1]) / 1e3
    return {
        "gap_median_us": float(np.median(gaps)),
        "gap_p99_us": float(np.quantile(gaps, 0.99)),
        "host_start_us": statistics.median(host) * 1e6,
    }


@dataclass(frozen=True, slots=True)
class Uploads:
    """Uploads of one file under several numbers of readers, in GB/s."""

    device: CudaDevice
    path: Path

    def measure(self) -> dict[str, float]:
        """Best of two each: the first may wait for memory."""
        size = self.path.stat().st_size
        memory = self.device.allocate(size)
        driver = open_driver(0)
        view = np.memmap(self.path, np.uint8, "r")
        run = Upload(Stored(view, (self.path, 0)), 0, size, memory.address, size, 1, size)
        mapped = replace(run, stored=Stored(view))
        found = {}
        for name, upload, readers in (
            *((f"read_{count}", run, count) for count in (1, 4, 8, 12, 16)),
            ("mapped_12", mapped, 12),
        ):
            seconds = []
            for _ in range(2):
                begin = perf_counter()
                Uploader(driver, readers).run([upload], lambda _: None)
                seconds.append(perf_counter() - begin)
            found[name] = size / min(seconds) / 1e9
        driver.close()
        return found


def bus(device: CudaDevice) -> float:
    """Copies of a page-locked block to the device and nothing else, in GB/s."""
    driver = open_driver(0)
    size = 2**28
    host, target, stream = driver.alloc_host(size), device.allocate(size), driver.stream()

    def copy() -> None:
        driver.copy_in(target.address, host, size, stream)
        driver.sync(stream)

    rate = size / median_us(copy, 10) / 1e3
    driver.end_stream(stream)
    driver.free_host(host)
    driver.close()
    return rate


def built(folder: Path) -> Parts:
    """The benchmark's package for this GPU."""
    driver = open_driver(0)
    major, minor = driver.facts.capability
    driver.close()
    arch = f"sm_{major}{minor}" + "a" * (major >= 9)
    return package(folder, manifest, m=compiled(KERNELS, arch))


def main() -> None:
    """Measure everything once."""
    found: dict[str, object] = {}
    driver = open_driver(0)
    found["gpu"], found["driver"] = driver.facts.name, list(driver.facts.version)
    with tempfile.TemporaryDirectory() as scratch:
        parts = built(Path(scratch))
        begin = perf_counter()
        with load(parts, device="cuda") as session:
            found["load_ms"] = (perf_counter() - begin) * 1e3
            found["chain"] = boundaries(session)
            found["streamed"] = streamed(session)
            found["launches"] = {
                "graph_and_wait_us": median_us(lambda: session.run("graph"), 200),
                "list_and_wait_us": median_us(lambda: session.run("list", n=3), 200),
                "start_of_a_graph_us": median_us(lambda: session.start("graph", 1, ()), 200),
                "start_of_a_list_us": median_us(lambda: session.start("list", 1, (), n=3), 50),
                "launches": LAUNCHES,
            }
        path = Path(scratch) / "weights"
        with path.open("wb") as file:
            block = np.random.default_rng(1).integers(0, 256, 2**28, np.uint8).tobytes()
            for _ in range(UPLOAD_BYTES // 2**28):
                file.write(block)
        device = CudaDevice(driver)
        found["bus_gb_s"] = bus(device)
        found["upload_gb_s"] = Uploads(device, path).measure()
        device.close()
    found["threads_left"] = threading.active_count()
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
