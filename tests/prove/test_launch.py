"""CUDA kernels launched as their `call.json` says, on a driver that notes what it is asked."""

import ctypes
import json
import math
import struct
from dataclasses import dataclass, field, replace
from itertools import starmap

import pytest
import torch

from bedstone.build.lane import target_lane
from bedstone.library.mathematics import define, family_of
from bedstone.prove.build import build_kernels
from bedstone.prove.own.solutions import kernel_solution
from bedstone.prove.results import ResultError
from bedstone.prove.sandbox.calling import read_calling
from bedstone.prove.sandbox.cuda import Kernel, Matrix, cuda_unit, load_cuda
from bedstone.prove.sandbox.load import load_entry
from bedstone.prove.tensors import stored_shape, torch_dtype
from bedstone.prove.write import build_request, write_sources
from bedstone.spec.axes import axis_values, shape_of
from bedstone.spec.manifest import BytesParam, ScalarParam
from bedstone.spec.param import param_bytes, parse_param
from bedstone.spec.solution import BuildSpec, Solution, SourceFile
from bedstone.target.hardware import read_sets
from bedstone.target.nvrtc import cubin_path, find_nvrtc
from bedstone.target.sources import read_sources
from definitions import solution
from kernels.harness import extent, shared_bytes

HOPPER = read_sources(read_sets()["hopper"])
SETS = {n: target_lane("hopper", n).kernels for n in ("precise", "quantized")}


@dataclass
class Noting:
    """Functions by image and name, as the bytes of their parameters; what was launched."""

    functions: dict = field(default_factory=dict)
    capability: tuple = (9, 0)
    launched: list = field(default_factory=list)
    allowed: list = field(default_factory=list)
    mapped: list = field(default_factory=list)

    def function(self, image, name):
        sizes = self.functions.get((image, name))
        return None if sizes is None else list(self.functions).index((image, name))

    def parameter_sizes(self, function):
        return list(self.functions.values())[function]

    def allow(self, function, shared, *, large_clusters):
        self.allowed.append((function, shared, large_clusters))

    def tensor_map(self, matrix):
        self.mapped.append(matrix)
        return bytes([len(self.mapped)]) * 128

    def ready(self, function, launch):
        return lambda: self.launched.append((function, launch))


# --- our own --------------------------------------------------------------------------------------


def own(entry, numerics, base=None):
    """A kernel, its Solution, and its sizes."""
    kernel, family = dict(SETS[numerics].named)[entry], family_of(base or entry)
    numbers = {**family.defaults, **family.sizes}
    of = define(kernel, numbers, base or entry)
    return kernel, of, kernel_solution(kernel, of, numbers, HOPPER, entry), numbers


def tensors_of(of, numbers):
    sizes = axis_values(of, {name: int(numbers[name]) for name in of.var_axes})
    specs = {**of.inputs, **{n: s for n, s in of.outputs.items() if n not in of.in_place}}
    return {
        name: torch.zeros(
            stored_shape(spec.dtype, shape_of(spec, sizes)), dtype=torch_dtype(spec.dtype)
        )
        for name, spec in specs.items()
    }


def bound(tmp_path, entry, numerics, driver, base=None):
    """The launch that an entry's Solution comes to, beside what it should be made of."""
    kernel, of, made, numbers = own(entry, numerics, base)
    calling = read_calling(write_sources(made, tmp_path) / "call.json")
    types = tuple(map(parse_param, calling.types))
    tensors = tensors_of(of, numbers)
    Kernel(0, calling, calling.gpu, types, driver).bind(*tensors.values())()
    ((_, launch),) = driver.launched
    return kernel, numbers, tensors, launch


def require_as_the_catalog_says(tmp_path, numerics, entry, base):
    kernel, numbers, tensors, launch = bound(tmp_path, entry, numerics, Noting(), base)
    assert launch.grid == tuple(extent(e, numbers) for e in kernel.grid), entry
    assert launch.shared == shared_bytes(kernel.shared, numbers), entry
    assert (launch.block, launch.cluster) == (kernel.block, kernel.cluster), entry
    (stage,) = kernel.launches
    for param, found in zip(stage.params, launch.parameters, strict=True):
        assert len(found) == param_bytes(param.type), (entry, param)
        if param.name in kernel.parts:
            continue
        if isinstance(param.type, ScalarParam):
            kind = {"i32": "<i", "f32": "<f"}[param.type.type]
            assert found == struct.pack(kind, numbers[param.name]), (entry, param)
        elif not isinstance(param.type, BytesParam):
            assert found == struct.pack("<Q", tensors[param.name].data_ptr()), (entry, param)


def entries(numerics):
    """Every entry, and the one that it is a variant of."""
    held = SETS[numerics]
    bases = {name: entry for entry, rows in held.variants.items() for name, _ in rows}
    bases |= {name: join.kernel.entry for name, join in held.joins.items()}
    return {entry: bases.get(entry) for entry, _ in held.named}


def test_a_kernel_of_each_source_is_launched_as_the_catalog_says(tmp_path):
    some = {}
    for entry, base in entries("quantized").items():
        kernel = dict(SETS["quantized"].named)[entry]
        some.setdefault((kernel.source, kernel.block, kernel.cluster), (entry, base))
    for entry, base in some.values():
        require_as_the_catalog_says(tmp_path, "quantized", entry, base)


@pytest.mark.slow
@pytest.mark.parametrize("numerics", SETS)
def test_every_kernel_is_launched_as_the_catalog_says(tmp_path, numerics):
    for entry, base in entries(numerics).items():
        require_as_the_catalog_says(tmp_path, numerics, entry, base)


def test_matrices_that_the_copy_engine_reads_are_mapped(tmp_path):
    driver = Noting()
    entry = "linear_q_bf16_batch"
    _, numbers, tensors, launch = bound(tmp_path, entry, "quantized", driver, "linear_q_bf16")
    k, rows, n = (numbers[name] for name in ("k", "rows", "n"))
    x, w = (tensors[name].data_ptr() for name in ("xq", "w"))
    assert driver.mapped == [
        *(Matrix(x, rows, k, height) for height in (16, 32, 64)),
        *(Matrix(w, n, k, height) for height in (8, 16, 32, 64, 128)),
    ]
    assert launch.parameters[-1] == b"".join(bytes([at]) * 128 for at in range(1, 9))


def test_what_a_kernel_takes_by_value_is_read_from_its_tensor(tmp_path):
    kernel, of, made, numbers = own("rope_table", "quantized")
    calling = read_calling(write_sources(made, tmp_path) / "call.json")
    driver, tensors = Noting(), tensors_of(of, numbers)
    tensors["freqs"] += torch.arange(256)
    types = tuple(map(parse_param, calling.types))
    Kernel(0, calling, calling.gpu, types, driver).bind(*tensors.values())()
    at = [param.name for param in kernel.params].index("freqs")
    assert driver.launched[0][1].parameters[at] == struct.pack("<256f", *range(256))


def test_memory_of_the_calls_own_is_there_as_long_as_the_launch(tmp_path):
    parts = [{"parts": [[[5], 1, 0], [[], 2, 3]]}, {"parts": [[[5], 3, 0]]}]
    types = "in buffer<f32>, out buffer<f32>, i32, out buffer<f32>, out buffer<f32>, i32"
    own = [*CALL["parameters"], *parts, {"i32": 7}]
    made = double(parameters=own, types=types)
    calling, driver = read_calling(write_sources(made, tmp_path) / "call.json"), Noting()
    kernel = Kernel(0, calling, calling.gpu, tuple(map(parse_param, calling.types)), driver)
    run = kernel.bind(torch.ones(8), torch.zeros(8))
    run()
    ((_, launch),) = driver.launched
    for found, count in zip(launch.parameters[3:5], (7 * 4, 3), strict=True):
        (address,) = struct.unpack("<Q", found)
        held = (ctypes.c_float * count).from_address(address)
        assert all(map(math.isnan, held))
    assert launch.parameters[5] == struct.pack("<i", 7)


def test_no_rows_are_no_launch(tmp_path):
    _, of, made, numbers = own("silu", "quantized")
    calling = read_calling(write_sources(made, tmp_path) / "call.json")
    driver = Noting()
    types = tuple(map(parse_param, calling.types))
    tensors = tensors_of(of, numbers | dict.fromkeys(of.var_axes, 0))
    Kernel(0, calling, calling.gpu, types, driver).bind(*tensors.values())()
    assert driver.launched == []


# --- anybody's ------------------------------------------------------------------------------------

DOUBLE = """
#include "twice.cuh"
extern "C" __global__ void run(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = TWICE(x[i]);
}
"""
CALL = {
    "types": "in buffer<f32>, out buffer<f32>, i32",
    "tensors": ["x", "y"],
    "parameters": [{"tensor": "x"}, {"tensor": "y"}, {"i32": ["x", 0]}],
    "grid": [[2, 256, 1], 1, 1],
    "shared": [16, [[2, 4]]],
    "arch": "sm_90a",
    "block": [256, 1, 1],
    "cluster": [2, 4, 2],
    "overlaps": True,
}


def double(code=DOUBLE, name="candidate", **call):
    files = {
        "main.cu": code,
        "twice.cuh": "#define TWICE(x) ((x) * FACTOR)\n",
        "call.json": json.dumps(CALL | call),
    }
    spec = BuildSpec(("cuda",), ("gpu",), "main.cu::run", options={"cuda_cflags": ("-DFACTOR=2",)})
    return Solution(name, "double_n", "tester", spec, tuple(starmap(SourceFile, files.items())))


def loaded(tmp_path, made, driver):
    request = build_request(made, tmp_path / "cache")
    return load_cuda(write_sources(made, tmp_path), "main.cu", "run", request, driver)


def put(tmp_path, made, code=b"code"):
    """Keep a cubin of a Solution as if it had been compiled before; the functions it has."""
    unit = cuda_unit(write_sources(made, tmp_path) / "main.cu", made.spec.options)
    path = cubin_path(unit, "sm_90a", cache=tmp_path / "cache", nvrtc=find_nvrtc())
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(code)
    return {(code, "run"): (8, 8, 4)}


def test_a_cubin_that_was_compiled_before_is_launched(tmp_path):
    driver = Noting(put(tmp_path, double()))
    x, y = torch.zeros(1000), torch.zeros(1000)
    call = loaded(tmp_path, double(), driver)(x, y)
    assert driver.launched == []
    call()
    ((_, launch),) = driver.launched
    assert launch.grid == (4, 1, 1)
    assert (launch.block, launch.cluster, launch.shared) == ((256, 1, 1), (2, 4, 2), 4016)
    pointers = struct.pack("<QQ", x.data_ptr(), y.data_ptr())
    assert b"".join(launch.parameters) == pointers + struct.pack("<i", 1000)
    assert driver.allowed == [(0, 4016, True)]


def test_a_source_is_compiled_with_its_headers_and_flags(tmp_path):
    with pytest.raises(ResultError, match="no function `run`") as refused:
        loaded(tmp_path, double(), Noting())
    assert refused.value.status == "COMPILE_ERROR"
    (kept,) = (tmp_path / "cache").glob("*.cubin")
    driver = Noting({(kept.read_bytes(), "run"): (8, 8, 4)})
    assert loaded(tmp_path, double(), driver)(torch.zeros(1), torch.zeros(1)) is not None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"code": "not C"}, "does not compile"),
        ({"arch": "sm_80"}, "cubin for `sm_80` needs 8.0 or a later 8.x; the device is 9.0"),
        ({"arch": "x"}, "`x` is no architecture"),
        ({"types": "in buffer<f32>, i32, i32"}, "parameters of [8, 8, 4] bytes, `call.json` says"),
        ({"types": "i32"}, "a type for each parameter"),
        ({"types": "float *, float *, int"}, "`types` of `call.json`"),
        ({"block": 256}, "a kernel says how it is called in `call.json`"),
        ({"grid": [1]}, "three extents"),
    ],
)
def test_what_cannot_be_launched_is_refused(tmp_path, changes, said):
    driver = Noting(put(tmp_path, double()))
    with pytest.raises(ResultError) as refused:
        loaded(tmp_path, double(**changes), driver)
    assert refused.value.status == "COMPILE_ERROR"
    assert said in str(refused.value)


def test_a_map_beyond_its_matrix_is_refused(tmp_path):
    made = double(
        types="in buffer<f32>, bytes<128>, i32",
        parameters=[{"tensor": "x"}, {"maps": [["x", 2, [2], 16]]}, {"i32": ["x", 0]}],
    )
    functions = dict.fromkeys(put(tmp_path, made), (8, 128, 4))
    bind = loaded(tmp_path, made, Noting(functions))
    with pytest.raises(ResultError, match="10 rows of 10 values, over 40 bytes"):
        bind(torch.zeros(10), torch.zeros(10))


def test_a_kernel_for_another_device_is_refused(tmp_path):
    folder = write_sources(double(), tmp_path)
    with pytest.raises(ResultError, match="a kernel for `cuda`, and Solutions run on `cpu`"):
        load_entry(folder, build_request(double(), tmp_path), "cpu")


# --- compiled before ------------------------------------------------------------------------------


def test_each_module_is_compiled_once_and_a_faulty_one_stops_no_other(tmp_path):
    every = [
        double(),
        double(name="wider", block=[512, 1, 1]),
        double("not C", name="faulty"),
        solution("def run(x): return x"),
    ]
    told = []
    built = build_kernels(every, tmp_path, tmp_path / "modules", lambda *at: told.append(at))
    assert (built.modules, built.compiled, list(built.failed)) == (2, 1, ["faulty"])
    assert told[-1] == (2, 2)
    assert len(list(tmp_path.glob("*.cubin"))) == 1
    again = build_kernels(every[:2], tmp_path, tmp_path / "modules")
    assert (again.modules, again.compiled) == (1, 0)


def test_a_cubin_of_a_hardware_set_is_taken_for_its_own_sources_alone(tmp_path):
    kernel, _, made, _ = own("silu", "quantized")
    nvrtc, library, cache = find_nvrtc(), tmp_path / "modules", tmp_path / "solutions"
    unit = HOPPER.unit(kernel.source, kernel.defines)
    known = cubin_path(unit, "sm_90a", cache=library, nvrtc=nvrtc)
    library.mkdir()
    known.write_bytes(b"kept")
    assert build_kernels([made], cache, library).compiled == 1
    (taken,) = cache.glob("*.cubin")
    assert taken.read_bytes() == b"kept"
    first, *others = made.sources
    changed = replace(made, sources=(replace(first, content=first.content + "\n"), *others))
    assert build_kernels([changed], cache, library).compiled == 1
    assert {path.read_bytes()[:4] for path in cache.glob("*.cubin")} == {b"kept", b"\x7fELF"}
