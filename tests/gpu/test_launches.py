"""What a launch may be: packs, tensor maps, clusters, early starts, shared memory, modules."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bedstone.errors import KernelError, TargetError
from bedstone.runtime.load import load
from bedstone.runtime.lower import Kernel
from bedstone.spec.manifest import (
    F32,
    I64,
    Batch,
    BufArg,
    Buffer,
    BufferParam,
    BytesParam,
    Call,
    Impl,
    KernelLaunch,
    Manifest,
    Mul,
    Op,
    Pack,
    PackField,
    ParamArg,
    Program,
    ScalarParam,
    TensorMap,
    Var,
    VarArg,
    When,
)
from gpu_kernels import artifact, compiled, package

IN, OUT, INOUT = (BufferParam(way, "f32") for way in ("in", "out", "inout"))
ROWS, COLS = 40, 64


def manifest_of(launches, params, buffers, args, **more):
    op = Op(params, Impl(tuple(launches)))
    program = more.pop("program", {})
    return lambda table: Manifest(
        "m", buffers, table, {"f": op}, {"run": Program((Call("f", args),), **program)}, **more
    )


def pair(rows=ROWS, cols=COLS):
    return {"x": Buffer("f32", (rows, cols), "input"), "y": Buffer("f32", (rows, cols), "output")}


def values(rows=ROWS, cols=COLS):
    return np.random.default_rng(5).standard_normal((rows, cols)).astype(np.float32)


PACKED = """
struct Args { const float *x; float *y; float by; int n; long long shift; };
extern "C" __global__ void packed(Args a, unsigned char tail) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (i < a.n) a.y[i] = a.x[i] * a.by + a.shift + tail;
}
"""


def test_a_pack_is_the_struct_the_kernel_takes(tmp_path, arch):
    pack = Pack(
        32,
        (
            PackField(0, ParamArg(0)),
            PackField(8, ParamArg(1)),
            PackField(16, F32(0.5)),
            PackField(20, VarArg("n")),
            PackField(24, I64(-7)),
        ),
    )
    launch = KernelLaunch(
        "m", "packed", (32, 1, 1), (80, 1, 1), params=(BytesParam(32), ScalarParam("u8")),
        args=(pack, ParamArg(2)),
    )  # fmt: skip
    manifest = manifest_of(
        [launch], (IN, OUT, ScalarParam("u8")), pair(), (BufArg("x"), BufArg("y"), VarArg("k")),
        vars={"n": Var(ROWS * COLS), "k": Var(255)},
    )  # fmt: skip
    with load(package(tmp_path, manifest, m=compiled(PACKED, arch)), device="cuda") as session:
        x = values()
        session.write("x", x)
        for n, k in ((100, 3), (ROWS * COLS, 200)):
            session.run("run", n=n, k=k)
            want = np.float32(0.5) * x - 7 + np.float32(k)
            assert np.array_equal(session.read("y").ravel()[:n], want.ravel()[:n])


TILES = """
#include <cuda.h>
extern "C" __global__ void tiles(const __grid_constant__ CUtensorMap from, float *y) {
  __shared__ alignas(128) float tile[8 * 32];
  __shared__ alignas(8) unsigned long long bar;
  unsigned where = (unsigned)__cvta_generic_to_shared(tile);
  unsigned mark = (unsigned)__cvta_generic_to_shared(&bar);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(mark));
    asm volatile("fence.proxy.async.shared::cta;");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" :: "r"(mark));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 :: "r"(where), "l"(&from), "r"(blockIdx.x * 32), "r"(blockIdx.y * 8), "r"(mark)
                 : "memory");
  }
  __syncthreads();
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0;"
                 " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(mark) : "memory");
  for (int i = threadIdx.x; i < 256; i += 32) {
    int row = blockIdx.y * 8 + i / 32, col = blockIdx.x * 32 + i % 32;
    if (row < ROWS) y[row * 64 + col] = tile[i];
  }
}
"""


@pytest.mark.parametrize("outermost", [0, ROWS])
def test_a_tensor_map_in_a_pack(tmp_path, arch, outermost):
    tensor = TensorMap(0, "f32", (COLS, outermost), (32, 8), (COLS * 4,), l2_promotion=128)
    launch = KernelLaunch(
        "m", "tiles", (32, 1, 1), (2, ROWS // 8, 1), params=(BytesParam(128), OUT),
        args=(Pack(128, (PackField(0, tensor),)), ParamArg(1)),
    )  # fmt: skip
    manifest = manifest_of([launch], (IN, OUT), pair(), (BufArg("x"), BufArg("y")))
    source = TILES.replace("#include <cuda.h>", "struct alignas(64) CUtensorMap { char b[128]; };")
    source = source.replace("row < ROWS", f"row < {ROWS}")
    with load(package(tmp_path, manifest, m=compiled(source, arch)), device="cuda") as session:
        x = values()
        session.write("x", x)
        session.run("run")
        assert np.array_equal(session.read("y"), x)


CLUSTERED = """
extern "C" __global__ void clustered(const float *x, float *y) {
  unsigned rank, size;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  y[blockIdx.x] = rank * 100 + size;
}
"""


@pytest.mark.parametrize("size", [1, 4, 8, 16])
def test_blocks_run_in_clusters(tmp_path, arch, size):
    launch = KernelLaunch("m", "clustered", (32, 1, 1), (32, 1, 1), cluster=(size, 1, 1))
    manifest = manifest_of([launch], (IN, OUT), pair(1, 32), (BufArg("x"), BufArg("y")))
    with load(package(tmp_path, manifest, m=compiled(CLUSTERED, arch)), device="cuda") as session:
        session.run("run")
        assert session.read("y").ravel().tolist() == [i % size * 100 + size for i in range(32)]


EARLY = """
extern "C" __global__ void early(const float *x, float *y) {
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  int i = blockIdx.x * 256 + threadIdx.x;
  y[i] = x[i] + 1;
}
"""


@pytest.mark.parametrize("graph", [True, False])
def test_a_chain_of_early_starts_keeps_its_order(tmp_path, arch, graph):
    size = 256 * 256
    early = KernelLaunch("m", "early", (256, 1, 1), (256, 1, 1), pdl=True)
    kinds = {"x": "input", "a": "workspace", "b": "workspace", "y": "output"}
    buffers = {name: Buffer("f32", (size,), kind) for name, kind in kinds.items()}
    order = ["x", *["a", "b"] * 20, "y"]
    calls = tuple(Call("f", (BufArg(left), BufArg(right))) for left, right in pairwise(order))
    shape = {"batch": Batch(1, 1), "graph": True} if graph else {"once": False}
    manifest = lambda table: Manifest(  # noqa: E731
        "m", buffers, table, {"f": Op((IN, OUT), Impl((early,)))}, {"run": Program(calls, **shape)}
    )
    with load(package(tmp_path, manifest, m=compiled(EARLY, arch)), device="cuda") as session:
        for seed in range(5):
            x = np.random.default_rng(seed).integers(0, 999, size).astype(np.float32)
            session.write("x", x)
            session.run("run")
            assert np.array_equal(session.read("y"), x + len(calls))


SHARED = """
extern "C" __global__ void shared(const float *x, float *y, int n) {
  extern __shared__ float held[];
  for (int i = threadIdx.x; i < n; i += 128) held[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 128) y[i] = held[n - 1 - i];
}
"""


def shared_manifest(size, shared):
    launch = KernelLaunch("m", "shared", (128, 1, 1), (1, 1, 1), shared_mem=shared)
    return manifest_of(
        [launch], (IN, OUT, ScalarParam("i32")), pair(1, size),
        (BufArg("x"), BufArg("y"), VarArg("n")), vars={"n": Var(size)},
    )  # fmt: skip


def test_shared_memory_up_to_what_the_vars_allow(tmp_path, arch):
    size = 200 * 256
    manifest = shared_manifest(size, Mul("n", 4))
    with load(package(tmp_path, manifest, m=compiled(SHARED, arch)), device="cuda") as session:
        x = values(1, size)
        session.write("x", x)
        for n in (10, size):
            session.run("run", n=n)
            assert np.array_equal(session.read("y").ravel()[:n], x.ravel()[:n][::-1])


def test_a_launch_runs_only_in_its_range(tmp_path, arch):
    launches = [
        KernelLaunch(
            "m", "shared", (128, 1, 1), (1, 1, 1), shared_mem=4096, when=When("n", low, high)
        )
        for low, high in ((None, 3), (9, None))
    ]
    manifest = manifest_of(
        launches, (IN, OUT, ScalarParam("i32")), pair(1, 64),
        (BufArg("x"), BufArg("y"), VarArg("n")), vars={"n": Var(16)},
    )  # fmt: skip
    with load(package(tmp_path, manifest, m=compiled(SHARED, arch)), device="cuda") as session:
        session.write("x", np.ones((1, 64), np.float32))
        found = []
        for n in range(1, 17):
            session.run("run", n=n)
            found.append(session.read("y").sum())
        assert found == [1, 2, 3, 3, 3, 3, 3, 3, 9, 10, 11, 12, 13, 14, 15, 16]


TYPES = """
extern "C" __global__ void types(const float *x, long long a, int b, float c, unsigned char d) {}
struct Seven { char c[7]; };
extern "C" __global__ void odd(Seven s, float *y) {}
"""
DECLARED = (IN, ScalarParam("i64"), ScalarParam("i32"), ScalarParam("f32"), ScalarParam("u8"))


def test_parameters_are_those_the_kernel_was_compiled_for(device, arch):
    module = artifact("m", compiled(TYPES, arch))
    device.function(module, Kernel("m", "types", DECLARED))
    device.function(module, Kernel("m", "odd", (BytesParam(7), OUT)))


@pytest.mark.parametrize("index", range(len(DECLARED)))
@pytest.mark.parametrize("other", [ScalarParam("i64"), ScalarParam("i32"), ScalarParam("u8"), None])
def test_any_other_size_is_refused_with_both_layouts(device, arch, index, other):
    params = [*DECLARED]
    params[index : index + 1] = [] if other is None else [other]
    sizes = {"i64": 8, "i32": 4, "f32": 4, "u8": 1}
    given = [8 if p == IN else sizes[p.type] for p in params]
    if given == [8, 8, 4, 4, 1]:
        return
    with pytest.raises(KernelError) as caught:
        device.function(artifact("m", compiled(TYPES, arch)), Kernel("m", "types", tuple(params)))
    assert f"passes {given} bytes, the kernel takes [8, 8, 4, 4, 1] bytes" in str(caught.value)


def test_more_threads_than_it_was_compiled_for_are_refused(device, arch):
    source = 'extern "C" __global__ void __launch_bounds__(64) f() {}'
    with pytest.raises(KernelError, match="blocks of 128 threads, it was compiled for 64 at most"):
        device.function(artifact("m", compiled(source, arch)), Kernel("m", "f", (), (128, 1, 1)))


def test_an_entry_that_is_not_there(device, arch):
    with pytest.raises(KernelError, match=r"kernel `g` of module `m` .* no such function"):
        device.function(artifact("m", compiled(TYPES, arch)), Kernel("m", "g", ()))


def test_text_that_the_driver_compiles(tmp_path, arch):
    """The newest PTX a driver takes is compiled; one version more is refused by the table."""
    text = compiled(SHARED, f"compute_{arch[3:]}", "PTX")
    manifest = shared_manifest(64, 256)
    with load(package(tmp_path, manifest, m=text), device="cuda") as session:
        session.write("x", x := values(1, 64))
        session.run("run", n=64)
        assert np.array_equal(session.read("y"), x[:, ::-1])


def test_text_newer_than_the_driver_is_refused_before_it(device, arch):
    text = compiled(SHARED, f"compute_{arch[3:]}", "PTX")
    newer = b".version 99.9" + text[text.index(b".target") - 1 :]
    with pytest.raises(TargetError, match=r"`shared` .* needs PTX ISA 99\.9, this driver takes"):
        device.function(artifact("m", newer), Kernel("m", "shared", ()))


def test_code_for_another_gpu_says_so(device, arch):
    other = "sm_80" if arch != "sm_80" else "sm_90"
    with pytest.raises(TargetError, match="none of its code is for GPU"):
        device.function(artifact("m", compiled(TYPES, other)), Kernel("m", "types", DECLARED))


def test_device_code_of_a_host_object(tmp_path):
    """`add.so` was linked for the host; only its device code is used, and of that the float one."""
    data = Path(__file__).with_name("add.so").read_bytes()
    launch = KernelLaunch("m", "add", (64, 1, 1), (1, 1, 1))
    manifest = manifest_of(
        [launch], (IN, INOUT, ScalarParam("f32")),
        {"x": Buffer("f32", (64,), "input"), "y": Buffer("f32", (64,), "inout")},
        (BufArg("x"), BufArg("y"), F32(2.5)),
    )  # fmt: skip
    with load(package(tmp_path, manifest, m=data), device="cuda") as session:
        x = np.arange(64, dtype=np.float32)
        session.write("x", x)
        session.write("y", x)
        session.run("run")
        session.run("run")
        assert np.array_equal(session.read("y"), 6 * x)


FAULT = """
import sys
sys.path[:0] = [%r, %r]
from pathlib import Path
from bedstone.errors import DeviceError
from bedstone.runtime.load import load
from bedstone.spec.manifest import *
from gpu_kernels import compiled, package
source = 'extern "C" __global__ void wild(float *y, long long at) { y[at] = 1; }'
launch = KernelLaunch("m", "wild", (1, 1, 1), (1, 1, 1))
op = Op((BufferParam("out", "f32"), ScalarParam("i64")), Impl((launch,)))
def manifest(table):
    run = Program((Call("f", (BufArg("y"), I64(1 << 50))),))
    return Manifest("m", {"y": Buffer("f32", (4,), "output")}, table, {"f": op}, {"run": run})
session = load(package(Path(%r), manifest, m=compiled(source, %r)), device="cuda")
try:
    session.run("run")
except DeviceError as error:
    print(error)
session.close()
"""


def test_a_wild_write_is_an_error_of_the_program(tmp_path, arch):
    """In a process of its own: a fault ends a context for everybody in it."""
    tests = Path(__file__).resolve().parent.parent
    script = FAULT % (str(tests), str(tests.parent / "src"), str(tmp_path), arch)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "program `run`: the CUDA driver answered `CUDA_ERROR_" in done.stdout
