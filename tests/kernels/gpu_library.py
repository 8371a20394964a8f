"""Calls CUDA kernels as a manifest's launch would, with poison around and inside outputs."""

import ctypes
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from time import perf_counter

import ml_dtypes
import numpy as np
import pytest

from bedstone.library.cuda.catalog import cuda_kernels
from bedstone.library.kernel import BOX_VALUES, MAPS, Boxes, CacheType, Kernel, Param
from bedstone.runtime.cuda.bindings import open_driver
from bedstone.runtime.cuda.tensormap import tiled_map
from bedstone.spec.manifest import BytesParam, ScalarParam, StateParam, TensorMap
from bedstone.target.hardware import read_sets
from bedstone.target.nvrtc import compile_cubins, find_nvrtc
from bedstone.target.sources import read_sources
from bedstone.target.toolchain import Unit
from kernels.harness import DTYPES, GUARD, dim, extent, poison, shared_bytes

MOST_SHARED = 227 * 1024
DIRTY_BLOCKS = 528
"""Enough to come by every multiprocessor."""

_WARM = 20

CODE_PIECES = frozenset({"xs", "xz", "ys", "yz", "zs", "zz"})
"""Parameters of codes that have scales: these have none."""

CACHES: dict[CacheType, type] = {"f32": np.float32, "bf16": ml_dtypes.bfloat16}

_DIRTY = Path(__file__).with_name("dirty.cu")


@dataclass
class Placed:
    """An argument's array and its bytes on the device, guards around them."""

    array: np.ndarray
    address: int
    skew: int

    @property
    def nbytes(self) -> int:
        return self.array.nbytes + self.skew + 2 * GUARD

    def image(self) -> bytes:
        guard = b"\xa5" * GUARD
        return guard + b"\xa5" * self.skew + np.ascontiguousarray(self.array).tobytes() + guard


@dataclass
class GpuLibrary:
    """The CUDA kernels of one hardware set, compiled for it and run on GPU 0."""

    hardware: str
    cache: Path
    tables: CacheType = "f32"
    loaded: dict[str, int] = field(default_factory=dict)
    compiled: bool = "BEDSTONE_TEST_CACHE" in os.environ
    """That modules are compiled one by one: a cache has most of them."""

    def __post_init__(self) -> None:
        self.driver = open_driver(0)
        self.stream = self.driver.stream()
        self.kernels = cuda_kernels(self.tables)
        self.api = ctypes.CDLL("libcuda.so.1")
        (module,) = self._load([Unit((_DIRTY,))])
        self.dirty = self._function(module, "dirty", MOST_SHARED)

    def call(self, entry: str, **args: np.ndarray | float) -> None:
        """Run an entry on shared memory that holds what another kernel left there.

        One array given for two parameters is one piece of memory. Parts of wider tensors start off
        the multiples of 16 bytes that whole buffers start at.
        """
        launch, placed = self._prepared(entry, args)
        self._launch(self.dirty, (DIRTY_BLOCKS, 1, 1), (256, 1, 1), MOST_SHARED, [MOST_SHARED])
        launch()
        self.driver.sync(self.stream)
        for each in placed:
            self._take(each, entry)

    def timed(self, entry: str, times: int, **args: np.ndarray | float) -> float:
        """Seconds a launch of an entry takes, so many back to back, the first few left out."""
        launch, placed = self._prepared(entry, args)
        began = 0.0
        for count in (_WARM, times):
            self.driver.sync(self.stream)
            began = perf_counter()
            for _ in range(count):
                launch()
        self.driver.sync(self.stream)
        seconds = perf_counter() - began
        for each in placed:
            self.driver.free(each.address)
        return seconds / times

    def _prepared(
        self, entry: str, args: Mapping[str, np.ndarray | float]
    ) -> tuple[Callable[[], None], list[Placed]]:
        """What launches an entry, and its arrays on the device."""
        kernel = self._kernel(entry, args)
        own = {n: poison(tuple(dim(d, args) for d in ds), np.float32)
               for n, ds in kernel.parts.items()}  # fmt: skip
        (stage,) = kernel.launches
        words, placed = self._place(kernel, stage.params, {**args, **own})
        shared = shared_bytes(kernel.shared, args)
        function = self._function(self._module(kernel), kernel.entry, shared, kernel)
        grid = tuple(extent(e, args) for e in kernel.grid)

        def launch() -> None:
            if all(grid):
                self._launch(function, grid, kernel.block, shared, words, kernel)

        return launch, placed

    def _kernel(self, entry: str, args: Mapping[str, object]) -> Kernel:
        join = self.kernels.joins.get(entry)
        kernel = join.kernel if join is not None else self.kernels.get(entry)
        if kernel is None:
            pytest.skip(f"`{entry}` has no CUDA kernel")
        names = {p.name for p in kernel.params} - {MAPS}
        if args.keys() - names <= CODE_PIECES and args.keys() != names:
            pytest.skip("codes of this device have no scales")
        assert names == args.keys(), (entry, args.keys())
        return kernel

    def _module(self, kernel: Kernel) -> int:
        """The kernel's module; unless some are compiled already, all of its source side by side."""
        if kernel.module not in self.loaded:
            made_from = (kernel.source, kernel.defines.get("BS_ONLY"))
            same = [
                k for k in self.kernels.every if (k.source, k.defines.get("BS_ONLY")) == made_from
            ]
            modules = {k.module: k for k in ([kernel] if self.compiled else same)}
            sources = read_sources(read_sets()[self.hardware])
            units = [sources.unit(k.source, k.defines) for k in modules.values()]
            self.loaded |= dict(zip(modules, self._load(units), strict=True))
        return self.loaded[kernel.module]

    def _load(self, units: list[Unit]) -> list[int]:
        arch = read_sets()[self.hardware].arch
        paths = compile_cubins(units, arch, cache=self.cache, nvrtc=find_nvrtc())
        return [self.driver.load(path.read_bytes()) for path in paths]

    def _function(
        self, module: int, entry: str, shared: int, kernel: Kernel | None = None
    ) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        handle = ctypes.c_void_p(module)
        self._require(
            self.api.cuModuleGetFunction(ctypes.byref(function), handle, entry.encode()), entry
        )
        if kernel is not None:
            self._require_parameters(function, kernel)
        most_dynamic, large_clusters = 8, 14
        for attribute, value in ((most_dynamic, shared), (large_clusters, 1)):
            self._require(self.api.cuFuncSetAttribute(function, attribute, value), entry)
        return function

    def _require_parameters(self, function: ctypes.c_void_p, kernel: Kernel) -> None:
        """The driver's sizes of the parameters are the catalog's."""
        sizes = []
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        while not self.api.cuFuncGetParamInfo(
            function, ctypes.c_size_t(len(sizes)), ctypes.byref(offset), ctypes.byref(size)
        ):
            sizes.append(size.value)
        (stage,) = kernel.launches
        assert sizes == [_bytes_of(param.type) for param in stage.params], kernel.entry

    def _place(
        self, kernel: Kernel, params: tuple[Param, ...], args: Mapping[str, np.ndarray | float]
    ) -> tuple[list, list[Placed]]:
        words: list = []
        placed: list[Placed] = []
        starts: dict[str, int] = {}
        for param in params:
            if param.name == MAPS:
                maps = b"".join(self._map(boxes, starts, args) for boxes in kernel.boxes)
                words.append((ctypes.c_char * len(maps)).from_buffer_copy(maps))
                continue
            value = args[param.name]
            if isinstance(param.type, ScalarParam):
                kind = {"i32": ctypes.c_int32, "f32": ctypes.c_float}[param.type.type]
                words.append(kind(value))
                continue
            assert isinstance(value, np.ndarray), param
            if isinstance(param.type, BytesParam):
                words.append((ctypes.c_char * param.type.size).from_buffer_copy(value.tobytes()))
                continue
            if not isinstance(param.type, StateParam):
                assert value.dtype == DTYPES[param.type.dtype], (kernel.entry, param.name)
            found = next((each for each in placed if each.array is value), None)
            if found is None:
                skew = value.itemsize if f"{param.name}_unit" in args else 0
                found = self._put(value, skew)
                placed.append(found)
            starts[param.name] = found.address + GUARD + found.skew
            words.append(ctypes.c_uint64(starts[param.name]))
        return words, placed

    def _map(
        self, boxes: Boxes, starts: Mapping[str, int], args: Mapping[str, np.ndarray | float]
    ) -> bytes:
        width, matrix = prod(int(args[name]) for name in boxes.width), args[boxes.param]
        assert isinstance(matrix, np.ndarray)
        rows = int(args[boxes.rows]) if boxes.rows else matrix.size // width
        tensor = TensorMap(
            0, "bf16", (width, rows), (BOX_VALUES, boxes.height), (2 * width,), swizzle=128
        )  # fmt: skip
        return self.driver.encode(tiled_map(tensor, starts[boxes.param], 2 * width * rows))

    def _put(self, array: np.ndarray, skew: int) -> Placed:
        placed = Placed(array, 0, skew)
        placed.address = self.driver.alloc(placed.nbytes)
        image = placed.image()
        held = ctypes.create_string_buffer(image, len(image))
        self.driver.copy_in(placed.address, ctypes.addressof(held), len(image), self.stream)
        self.driver.sync(self.stream)
        return placed

    def _take(self, placed: Placed, entry: str) -> None:
        held = ctypes.create_string_buffer(placed.nbytes)
        address = ctypes.addressof(held)
        self.driver.copy_out(address, placed.address, placed.nbytes, self.stream)
        self.driver.sync(self.stream)
        self.driver.free(placed.address)
        start = GUARD + placed.skew
        end = start + placed.array.nbytes
        assert held.raw[:start] == b"\xa5" * start, f"{entry} wrote before a buffer"
        assert held.raw[end:] == b"\xa5" * GUARD, f"{entry} wrote behind a buffer"
        made = np.frombuffer(held.raw[start:end], placed.array.dtype)
        placed.array[...] = made.reshape(placed.array.shape)

    def _launch(
        self, function: ctypes.c_void_p, grid: tuple, block: tuple, shared: int, words: list,
        kernel: Kernel | None = None,
    ) -> None:  # fmt: skip
        values = [ctypes.c_int32(w) if isinstance(w, int) else w for w in words]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        config = _Config(*grid, *block, shared, ctypes.c_void_p(self.stream), None, 0)
        attributes = _attributes(kernel)
        if attributes:
            config.attributes = ctypes.cast(attributes, ctypes.c_void_p)
            config.count = len(attributes)
        status = self.api.cuLaunchKernelEx(ctypes.byref(config), function, pointers, None)
        self._require(status, str(kernel and kernel.entry))

    def _require(self, status: int, what: str) -> None:
        assert status == 0, f"the driver answers {status} to `{what}`"


class _Attribute(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint32 * 16))


class _Config(ctypes.Structure):
    _fields_ = (
        *((f"grid{axis}", ctypes.c_uint) for axis in "xyz"),
        *((f"block{axis}", ctypes.c_uint) for axis in "xyz"),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    )


def _attributes(kernel: Kernel | None) -> ctypes.Array | None:
    """The cluster's shape, and that the launch may begin before the one ahead of it has ended."""
    cluster_dimension, serialization = 4, 6
    found = []
    if kernel is not None and kernel.cluster is not None:
        found.append(_Attribute(cluster_dimension, 0, (*kernel.cluster,)))
    if kernel is not None and kernel.pdl:
        found.append(_Attribute(serialization, 0, (1,)))
    return (_Attribute * len(found))(*found) if found else None


def _bytes_of(kind: object) -> int:
    if isinstance(kind, BytesParam):
        return kind.size
    return 4 if isinstance(kind, ScalarParam) else 8
