"""The driver over `cuda-bindings`.

What runs for every launch or step goes straight to the driver's library with plain integers: the
bindings' own wrapper costs several microseconds a launch.
"""

import contextlib
import ctypes
import threading
from importlib import import_module
from types import ModuleType
from typing import Any

from bedstone.errors import CallerError, TargetError
from bedstone.runtime.cuda.driver import (
    NOT_FOUND,
    NOT_READY,
    CudaError,
    Facts,
    Launch,
    TiledMap,
)
from bedstone.runtime.cuda.near import near
from bedstone.runtime.device import RowCopy

_LIBRARY = "libcuda.so.1"
_INSTALL = "install it with `pip install 'bedstone[cuda]'`"
_POINTER = ctypes.c_void_p
_ALL_SHARED = 100
"""Of the memory that caches and blocks share, the percentage for blocks."""


def open_driver(ordinal: int) -> "CudaDriver":
    """The driver with the GPU of that number; nothing of CUDA is imported before.

    Raises `TargetError`: the bindings, the driver or a GPU are missing.
    Raises `CallerError`: there are fewer GPUs.
    """
    try:
        api = import_module("cuda.bindings.driver")
    except ImportError as error:
        raise TargetError(
            f"the cuda device needs the package `cuda-bindings`: {_INSTALL}"
        ) from error
    try:
        _checked(api, "cuInit", 0)
        count = _checked(api, "cuDeviceGetCount")
    except (RuntimeError, CudaError) as error:
        raise TargetError(
            f"the cuda device needs an NVIDIA GPU and its driver, and there is none: {error}"
        ) from error
    if not 0 <= ordinal < count:
        raise CallerError(f"no GPU {ordinal}: the machine has {count}")
    return CudaDriver(api, ordinal)


def _checked(api: ModuleType, call: str, *args: object) -> Any:  # noqa: ANN401 - the bindings carry no types
    status, *values = getattr(api, call)(*args)
    if status.value:
        raise CudaError(call, status.name)
    return values[0] if len(values) == 1 else values or None


class CudaDriver:
    """The primary context of one GPU, current in the thread that opened it."""

    def __init__(self, api: ModuleType, ordinal: int) -> None:
        self._api = api
        self._library = _hot(ctypes.CDLL(_LIBRARY))
        self.launch: Launch = self._library.cuLaunchKernelEx
        self._device = self._call("cuDeviceGet", ordinal)
        self._ordinal = ordinal
        self._context: Any = self._call("cuDevicePrimaryCtxRetain", self._device)
        self._entered = threading.local()
        self._closed = False
        self.enter()
        self.facts = self._read_facts()

    def enter(self) -> None:
        """Make the context current, where the thread has not done so before."""
        if not getattr(self._entered, "done", False):
            self._call("cuCtxSetCurrent", self._context)
            self._entered.done = True

    def close(self) -> None:
        """Let go of the context, once; it ends with the last of the process that holds it."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(CudaError):  # after a fault every call answers with it
            self._call("cuDevicePrimaryCtxRelease", self._device)

    # --- memory ---

    def free_bytes(self) -> int:
        """Device memory that is free."""
        return int(self._call("cuMemGetInfo")[0])

    def alloc(self, nbytes: int) -> int:
        """Device memory, as it was left."""
        return int(self._call("cuMemAlloc", nbytes))

    def free(self, address: int) -> None:
        """Give `alloc`'s memory back."""
        self._call("cuMemFree", address)

    def alloc_host(self, nbytes: int) -> int:
        """Page-locked memory near the GPU, portable and mapped."""
        flags = self._api.CU_MEMHOSTALLOC_PORTABLE | self._api.CU_MEMHOSTALLOC_DEVICEMAP
        with near(self.facts.node):
            return int(self._call("cuMemHostAlloc", nbytes, flags))

    def free_host(self, address: int) -> None:
        """Give `alloc_host`'s memory back."""
        self._call("cuMemFreeHost", address)

    def granule(self) -> int:
        """What the driver recommends for physical memory of this device."""
        flag = self._api.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED
        return int(self._call("cuMemGetAllocationGranularity", self._physical(), flag))

    def reserve(self, nbytes: int) -> int:
        """Addresses at the driver's own alignment."""
        return int(self._call("cuMemAddressReserve", nbytes, 0, 0, 0))

    def unreserve(self, address: int, nbytes: int) -> None:
        """Give a range of addresses back."""
        self._call("cuMemAddressFree", address, nbytes)

    def create(self, nbytes: int) -> int:
        """Physical memory of this device."""
        return int(self._call("cuMemCreate", nbytes, self._physical(), 0))

    def discard(self, chunk: int) -> None:
        """Give physical memory back."""
        self._call("cuMemRelease", chunk)

    def map(self, address: int, nbytes: int, chunk: int) -> None:
        """Put physical memory behind addresses."""
        self._call("cuMemMap", address, nbytes, 0, chunk, 0)

    def unmap(self, address: int, nbytes: int) -> None:
        """Take it away again."""
        self._call("cuMemUnmap", address, nbytes)

    def allow(self, address: int, nbytes: int) -> None:
        """Let the device read and write a mapped range."""
        access = self._api.CUmemAccessDesc()
        access.location = self._physical().location
        access.flags = self._api.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        self._call("cuMemSetAccess", address, nbytes, [access], 1)

    # --- work ---

    def zero(self, address: int, nbytes: int, stream: int) -> None:
        """Set device memory to zero."""
        self._call("cuMemsetD8Async", address, 0, nbytes, stream)

    def copy_in(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy from the host."""
        self._do("cuMemcpyHtoDAsync_v2", target, source, nbytes, stream)

    def copy_rows(self, rows: RowCopy, stream: int) -> None:
        """Copy rows; the driver knows by their addresses where they lie."""
        anywhere = self._api.CUmemorytype.CU_MEMORYTYPE_UNIFIED
        copy = self._api.CUDA_MEMCPY2D()
        copy.srcMemoryType = copy.dstMemoryType = anywhere
        copy.srcDevice, copy.srcPitch = rows.source, rows.source_pitch
        copy.dstDevice, copy.dstPitch = rows.target, rows.target_pitch
        copy.WidthInBytes, copy.Height = rows.width, rows.rows
        self._call("cuMemcpy2DAsync", copy, stream)

    def copy_out(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy to the host."""
        self._call("cuMemcpyDtoHAsync", target, source, nbytes, stream)

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy device memory, or page-locked memory of the host."""
        self._call("cuMemcpyAsync", target, source, nbytes, stream)

    def stream(self) -> int:
        """A stream of its own."""
        flag = self._api.CUstream_flags.CU_STREAM_NON_BLOCKING
        return int(self._call("cuStreamCreate", flag.value))

    def end_stream(self, stream: int) -> None:
        """Let go of a stream."""
        self._call("cuStreamDestroy", stream)

    def sync(self, stream: int) -> None:
        """Return once everything enqueued in a stream is over."""
        self._do("cuStreamSynchronize", stream)

    def event(self) -> int:
        """A mark that takes no time."""
        flag = self._api.CUevent_flags.CU_EVENT_DISABLE_TIMING
        return int(self._call("cuEventCreate", flag.value))

    def end_event(self, event: int) -> None:
        """Let go of a mark."""
        self._call("cuEventDestroy", event)

    def record(self, event: int, stream: int) -> None:
        """Put a mark behind what a stream has so far."""
        self._do("cuEventRecord", event, stream)

    def follow(self, stream: int, event: int) -> None:
        """Let a stream wait for a mark; the host does not."""
        self._call("cuStreamWaitEvent", stream, event, 0)

    def passed(self, event: int) -> bool:
        """Whether a stream has come to a mark."""
        try:
            self._call("cuEventQuery", event)
        except CudaError as error:
            if error.code == NOT_READY:
                return False
            raise
        return True

    def wait(self, event: int) -> None:
        """Return once a stream has come to a mark; other threads run meanwhile."""
        self._do("cuEventSynchronize", event)

    # --- code ---

    def load(self, image: bytes) -> int:
        """A module; text is given its closing zero."""
        return int(self._call("cuModuleLoadData", image + b"\0"))

    def unload(self, module: int) -> None:
        """Let go of a module."""
        self._call("cuModuleUnload", module)

    def function(self, module: int, name: str) -> int | None:
        """A function that is on the device already: loading it later could break a recording."""
        try:
            function = self._call("cuModuleGetFunction", module, name.encode())
        except CudaError as error:
            if error.code == NOT_FOUND:
                return None
            raise
        self._call("cuFuncLoad", function)
        return int(function)

    def param_sizes(self, function: int) -> tuple[int, ...]:
        """Ask for one parameter after another until the driver knows no more."""
        sizes: list[int] = []
        while True:
            status, _, size = self._api.cuFuncGetParamInfo(function, len(sizes))
            if status.name == "CUDA_ERROR_INVALID_VALUE":
                return tuple(sizes)
            if status.value:
                raise CudaError("cuFuncGetParamInfo", status.name)
            sizes.append(int(size))

    def most_threads(self, function: int) -> int:
        """The most threads a block of it may have."""
        names = self._api.CUfunction_attribute
        which = names.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
        return int(self._call("cuFuncGetAttribute", which, function))

    def has(self, module: int, name: str) -> bool:
        """Ask for its address."""
        try:
            self._call("cuModuleGetGlobal", module, name.encode())
        except CudaError as error:
            if error.code == NOT_FOUND:
                return False
            raise
        return True

    def blocks_at_once(self, function: int, threads: int, shared: int) -> int:
        """Those of a multiprocessor, of every multiprocessor."""
        each = self._call("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, threads, shared)
        which = self._api.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        return int(each) * int(self._call("cuDeviceGetAttribute", which, self._device))

    def allow_shared(self, function: int, nbytes: int) -> None:
        """Raise what its blocks may share."""
        names = self._api.CUfunction_attribute
        which = names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._call("cuFuncSetAttribute", function, which, nbytes)

    def prefer_shared(self, function: int) -> None:
        """Run it on multiprocessors that hold as much shared memory as they can."""
        names = self._api.CUfunction_attribute
        which = names.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
        self._call("cuFuncSetAttribute", function, which, _ALL_SHARED)

    def allow_large_clusters(self, function: int) -> None:
        """Let it run in clusters of more than eight blocks."""
        names = self._api.CUfunction_attribute
        which = names.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        self._call("cuFuncSetAttribute", function, which, 1)

    def encode(self, tiled: TiledMap) -> bytes:
        """The 128 bytes of a tensor map, element strides one."""
        api = self._api
        fill = api.CUtensorMapFloatOOBfill(int(tiled.oob_nan))
        made = self._call(
            "cuTensorMapEncodeTiled",
            api.CUtensorMapDataType(tiled.dtype),
            len(tiled.dims),
            tiled.address,
            [api.cuuint64_t(extent) for extent in tiled.dims],
            [api.cuuint64_t(stride) for stride in tiled.strides],
            [api.cuuint32_t(extent) for extent in tiled.box],
            [api.cuuint32_t(1) for _ in tiled.dims],
            api.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            api.CUtensorMapSwizzle(tiled.swizzle),
            api.CUtensorMapL2promotion(tiled.promotion),
            fill,
        )
        return ctypes.string_at(made.getPtr(), 128)

    # --- graphs ---

    def begin(self, stream: int) -> None:
        """Record what this thread enqueues; other threads go on with their own calls."""
        mode = self._api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self._call("cuStreamBeginCapture", stream, mode)

    def end(self, stream: int) -> int:
        """End the recording; the graph, 0 if it was broken off."""
        return int(self._call("cuStreamEndCapture", stream) or 0)

    def drop_graph(self, graph: int) -> None:
        """Let go of a recording that will not be used."""
        if graph:
            self._call("cuGraphDestroy", graph)

    def instantiate(self, graph: int, stream: int) -> int:
        """A graph ready to be launched, and in place on the device; the graph is used up."""
        try:
            made = int(self._call("cuGraphInstantiate", graph, 0))
        finally:
            self.drop_graph(graph)
        self._call("cuGraphUpload", made, stream)
        return made

    def end_graph(self, executable: int) -> None:
        """Let go of it."""
        self._call("cuGraphExecDestroy", executable)

    def launch_graph(self, executable: int, stream: int) -> None:
        """Run everything a graph recorded."""
        self._do("cuGraphLaunch", executable, stream)

    # --- how ---

    def _call(self, call: str, *args: object) -> Any:  # noqa: ANN401 - as above
        """A call that is not made for every step, through the bindings."""
        return _checked(self._api, call, *args)

    def _do(self, call: str, *args: int) -> None:
        """A call that is, past them."""
        status = getattr(self._library, call)(*args)
        if status:
            raise CudaError(call, self._api.CUresult(status).name)

    def _physical(self) -> Any:  # noqa: ANN401 - as above
        api = self._api
        made = api.CUmemAllocationProp()
        made.type = api.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        made.location.type = api.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        made.location.id = self._ordinal
        return made

    def _read_facts(self) -> Facts:
        names = self._api.CUdevice_attribute
        major, minor, maps, node = (
            int(self._call("cuDeviceGetAttribute", which, self._device))
            for which in (
                names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                names.CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED,
                names.CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID,
            )
        )
        version = int(self._call("cuDriverGetVersion"))
        name = self._call("cuDeviceGetName", 256, self._device).split(b"\0")[0]
        spoken = version // 1000, version % 1000 // 10
        return Facts(name.decode(errors="replace"), (major, minor), spoken, bool(maps), node)


def _hot(library: ctypes.CDLL) -> ctypes.CDLL:
    """Argument types of the calls made past the bindings."""
    word = ctypes.c_uint64
    library.cuLaunchKernelEx.argtypes = [_POINTER, _POINTER, _POINTER, _POINTER]
    library.cuGraphLaunch.argtypes = [_POINTER, _POINTER]
    library.cuMemcpyHtoDAsync_v2.argtypes = [word, _POINTER, ctypes.c_size_t, _POINTER]
    library.cuEventRecord.argtypes = [_POINTER, _POINTER]
    library.cuEventSynchronize.argtypes = [_POINTER]
    library.cuStreamSynchronize.argtypes = [_POINTER]
    return library
