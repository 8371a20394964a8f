"""Calls kernels through ctypes the way the runtime does, with poison around and inside outputs."""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import ml_dtypes
import numpy as np

from bedstone.library.catalog import cpu_kernels
from bedstone.library.kernel import (
    CacheType,
    Dim,
    Extent,
    Kernel,
    KernelSet,
    Param,
    Shared,
    Stage,
)
from bedstone.spec.manifest import BufferParam, BytesParam, ScalarParam, StateParam
from bedstone.target.cpu import runnable
from bedstone.target.features import read_features
from bedstone.target.hardware import read_sets
from bedstone.target.sources import read_sources
from bedstone.target.toolchain import Compiler, Unit, compile_many

GUARD = 256
AVAILABLE = runnable(read_sets(), read_features())

DTYPES = {
    "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "i8": np.int8, "u8": np.uint8, "i32": np.int32, "i64": np.int64,
}  # fmt: skip


class Dim3(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32))


def guarded(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The array inside memory of 0xA5, and that memory."""
    memory = np.full(array.nbytes + 2 * GUARD, 0xA5, np.uint8)
    inner = memory[GUARD : GUARD + array.nbytes].view(array.dtype).reshape(array.shape)
    inner[...] = array
    return inner, memory


def poison(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """An output before it is written: NaN where the type has one, else bytes of 0xA5."""
    return (
        np.full(int(np.prod(shape)) * np.dtype(dtype).itemsize, 0xFF, np.uint8)
        .view(dtype)
        .reshape(shape)
    )


@dataclass
class Library:
    """The compiled kernels of one hardware set, for tables of one type."""

    hardware: str
    compiler: Compiler
    cache: Path
    loaded: dict[str, ctypes.CDLL]
    tables: CacheType = "f32"

    @property
    def kernels(self) -> KernelSet:
        return cpu_kernels(self.tables)

    def load(self, modules: frozenset[str]) -> None:
        missing = sorted(modules - self.loaded.keys())
        units = [self.unit(module) for module in missing]
        paths = compile_many(units, cache=self.cache, compiler=self.compiler)
        self.loaded |= {m: ctypes.CDLL(str(p)) for m, p in zip(missing, paths, strict=True)}

    def unit(self, module: str) -> Unit:
        kernel = next(k for k in self.kernels.kernels.values() if k.module == module)
        return read_sources(read_sets()[self.hardware]).unit(kernel.source, kernel.defines)

    def abi(self, kernel: Kernel, stage: Stage) -> str:
        self.load(frozenset({kernel.module}))
        text = ctypes.c_char * 2048
        return text.in_dll(self.loaded[kernel.module], f"bs_abi_{stage.entry}").value.decode()

    def call(self, entry: str, **args: np.ndarray | float) -> None:
        """Run every grid block, last first; each has its own poisoned scratch.

        One array given for two parameters is one piece of memory.
        """
        kernel = self.kernels.get(entry)
        assert kernel is not None, entry
        assert {p.name for p in kernel.params} == args.keys(), (entry, args.keys())
        self.load(frozenset({kernel.module}))
        guards = guards_of(kernel, args)
        for name, extents in kernel.parts.items():
            parts = poison(tuple(dim(d, args) for d in extents), np.float32)
            guards[name] = (parts, *guarded(parts))
        for stage in kernel.launches:
            self.launch(kernel, stage, pack(stage.params, args, guards), args)
        for array, inner, memory in guards.values():
            assert (memory[:GUARD] == 0xA5).all(), f"{entry} wrote before a buffer"
            assert (memory[-GUARD:] == 0xA5).all(), f"{entry} wrote behind a buffer"
            array[...] = inner

    def launch(
        self, kernel: Kernel, stage: Stage, packed: ctypes.Array, args: Mapping[str, object]
    ) -> None:
        function = self.loaded[kernel.module][stage.entry]
        grid = tuple(extent(e, args) for e in stage.grid)
        blocks = list(product(*(range(n) for n in grid)))
        for block in reversed(blocks):
            scratch, start = poisoned_scratch(shared_bytes(stage.shared, args))
            function(
                packed,
                ctypes.byref(Dim3(*block)),
                ctypes.byref(Dim3(*grid)),
                ctypes.c_void_p(start),
            )
            assert (scratch[-GUARD:] == 0xA5).all(), f"{stage.entry} wrote behind its scratch"


def poisoned_scratch(size: int) -> tuple[np.ndarray, int]:
    memory = np.full(size + 64 + GUARD, 0xA5, np.uint8)
    start = -memory.ctypes.data % 64
    memory = memory[: start + size + GUARD]
    memory[start : start + size] = 0xFF
    return memory, memory.ctypes.data + start


def extent(e: Extent, args: Mapping[str, object]) -> int:
    return e.times * (1 if e.param is None else -(-int(args[e.param]) // e.per))


def shared_bytes(shared: Shared | None, args: Mapping[str, object]) -> int:
    return 0 if shared is None else shared.bytes + sum(int(args[n]) * per for n, per in shared.per)


def dim(d: Dim, args: Mapping[str, object]) -> int:
    return -(-int(np.prod([args[name] for name in d.params])) // d.per) + d.more


Guarded = tuple[np.ndarray, np.ndarray, np.ndarray]


def guards_of(kernel: Kernel, args: Mapping[str, np.ndarray | float]) -> dict[str, Guarded]:
    """Each array by its parameter: itself, as a kernel gets it, and the memory around that."""
    guards: dict[str, Guarded] = {}
    for param in kernel.params:
        value = args[param.name]
        match param.type:
            case ScalarParam(_):
                continue
            case BufferParam(_, dtype):
                assert isinstance(value, np.ndarray), param
                assert value.dtype == DTYPES[dtype], (kernel.entry, param.name, value.dtype)
            case BytesParam(size):
                assert isinstance(value, np.ndarray), param
                assert value.nbytes == size, (kernel.entry, param.name)
            case StateParam(_):
                assert isinstance(value, np.ndarray), param
        shared = next((known for known in guards.values() if known[0] is value), None)
        guards[param.name] = shared or (value, *guarded(value))
    return guards


def pack(
    params: tuple[Param, ...],
    args: Mapping[str, np.ndarray | float],
    guards: Mapping[str, Guarded],
) -> ctypes.Array:
    words = np.zeros(len(params), np.uint64)
    for i, param in enumerate(params):
        if isinstance(param.type, ScalarParam):
            kind, value = DTYPES[param.type.type], args[param.name]
            words[i : i + 1].view(np.uint8)[:4] = np.array([value], kind).view(np.uint8)
        else:
            words[i] = guards[param.name][1].ctypes.data
    return (ctypes.c_uint64 * len(words))(*words.tolist())


@dataclass(frozen=True)
class Windowed:
    """A part of a wider tensor whose other values are poison: as an argument, and dense."""

    x: np.ndarray
    dense: np.ndarray
    row: int
    unit: int
    width: int

    def args(self, name: str) -> dict[str, np.ndarray | int]:
        sizes = {"row": self.row, "unit": self.unit, "width": self.width}
        return {name: self.x, **{f"{name}_{size}": value for size, value in sizes.items()}}


def windowed(
    rng: np.random.Generator, rows: int, *, units: int, width: int, pitch: int, offset: int
) -> Windowed:
    wide = poison((rows, units * pitch), np.float32)
    dense = rng.standard_normal((rows, units, width)).astype(np.float32)
    wide.reshape(rows, units, pitch)[..., offset : offset + width] = dense
    return Windowed(
        wide.reshape(-1)[offset:].copy(), dense.reshape(rows, -1), units * pitch, pitch, width
    )


def into(library: Library, entry: str, out: str, shape: tuple[int, int], args: dict) -> np.ndarray:
    """Run an entry whose last result goes to `out`, or to rows or columns of a table.

    What else the table holds must stay; a row whose slot is negative goes nowhere.
    """
    ending = entry.rpartition("_")[2]
    if ending not in ("rows", "cols"):
        y = poison(shape, np.float32)
        library.call(entry, **args, **{out: y})
        return y
    rows, width = shape
    slot = np.random.default_rng(width).permutation(rows + 3)[:rows].astype(np.int32)
    pitch, column = (width, 0) if ending == "rows" else (width + 9, 4)
    columns = {} if ending == "rows" else {"pitch": pitch, "column": column}
    table = np.full((rows + 3, pitch), 9, np.float32)
    skipped = np.array([-1, *slot[1:]], np.int32)
    library.call(entry, **args, table=table, slot=skipped, **columns)
    np.testing.assert_array_equal(table[slot[0]], 9)
    library.call(entry, **args, table=table, slot=slot, **columns)
    made = table[slot, column : column + width].copy()
    table[slot, column : column + width] = 9
    np.testing.assert_array_equal(table, 9)
    return made
