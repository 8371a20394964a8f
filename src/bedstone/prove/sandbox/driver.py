"""The CUDA driver's own library, in the context that PyTorch has made."""

import ctypes
from collections.abc import Callable

import torch

from bedstone.library.kernel import BOX_VALUES
from bedstone.prove.results import ResultError
from bedstone.prove.sandbox.cuda import Launch, Matrix
from bedstone.target.architecture import Capability

_LIBRARY = "libcuda.so.1"
_NOT_FOUND = 500
_INVALID_VALUE = 1
_MOST_SHARED, _LARGE_CLUSTERS = 8, 14
"""Attributes of a function."""

_CLUSTER = 4
"""An attribute of a launch."""

_BF16, _SWIZZLE_128, _PROMOTION_256 = 9, 3, 3
"""Of a tensor map."""

_MAP_BYTES, _MAP_ALIGN = 128, 64


class _Attribute(ctypes.Structure):
    _fields_ = (("id", ctypes.c_uint), ("pad", ctypes.c_uint), ("value", ctypes.c_uint32 * 16))


class _Config(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    )


class CudaDriver:
    """The driver with the current device."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(_LIBRARY)

    @property
    def capability(self) -> Capability:
        """The device's compute capability."""
        return torch.cuda.get_device_capability()

    def function(self, image: bytes, name: str) -> int | None:
        """Load a module and find its function of that name."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._do("cuModuleLoadData", ctypes.byref(module), image)
        find = self._library.cuModuleGetFunction
        status = find(ctypes.byref(function), module, name.encode())
        if status == _NOT_FOUND:
            return None
        self._require(status, "cuModuleGetFunction")
        return function.value

    def parameter_sizes(self, function: int) -> tuple[int, ...]:
        """Ask for one parameter after another until the driver knows no more."""
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        sizes: list[int] = []
        while True:
            status = self._library.cuFuncGetParamInfo(
                ctypes.c_void_p(function), ctypes.c_size_t(len(sizes)),
                ctypes.byref(offset), ctypes.byref(size),
            )  # fmt: skip
            if status == _INVALID_VALUE:
                return tuple(sizes)
            self._require(status, "cuFuncGetParamInfo")
            sizes.append(size.value)

    def allow(self, function: int, shared: int, *, large_clusters: bool) -> None:
        """Raise both limits."""
        set_attribute = "cuFuncSetAttribute"
        self._do(set_attribute, ctypes.c_void_p(function), _MOST_SHARED, ctypes.c_int(shared))
        if large_clusters:
            self._do(set_attribute, ctypes.c_void_p(function), _LARGE_CLUSTERS, ctypes.c_int(1))

    def tensor_map(self, matrix: Matrix) -> bytes:
        """Boxes of 64 values by `height` rows, swizzled, what lies beyond the matrix zero."""
        # the driver wants the descriptor on 64 bytes
        memory = ctypes.create_string_buffer(_MAP_BYTES + _MAP_ALIGN)
        start = ctypes.addressof(memory) + -ctypes.addressof(memory) % _MAP_ALIGN
        self._do(
            "cuTensorMapEncodeTiled",
            ctypes.c_void_p(start),
            _BF16,
            2,
            ctypes.c_void_p(matrix.address),
            (ctypes.c_uint64 * 2)(matrix.k, matrix.rows),
            (ctypes.c_uint64 * 1)(2 * matrix.k),
            (ctypes.c_uint32 * 2)(BOX_VALUES, matrix.height),
            (ctypes.c_uint32 * 2)(1, 1),
            0,
            _SWIZZLE_128,
            _PROMOTION_256,
            0,
        )
        return ctypes.string_at(start, _MAP_BYTES)

    def ready(self, function: int, launch: Launch) -> Callable[[], None]:
        """The launch as the driver takes it, for PyTorch's current stream."""
        values = [ctypes.create_string_buffer(each, len(each)) for each in launch.parameters]
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        attributes = (_Attribute * 1)()
        if launch.cluster is not None:
            attributes[0] = _Attribute(_CLUSTER, 0, (ctypes.c_uint32 * 16)(*launch.cluster))
        config = _Config(
            (ctypes.c_uint * 3)(*launch.grid),
            (ctypes.c_uint * 3)(*launch.block),
            launch.shared,
            torch.cuda.current_stream().cuda_stream,
            ctypes.addressof(attributes),
            launch.cluster is not None,
        )
        handle = ctypes.c_void_p(function)

        def enqueue() -> None:
            # names the parameters' bytes and the attributes: they are read by address
            held = (values, attributes)
            self._do("cuLaunchKernelEx", ctypes.byref(config), handle, pointers, None)
            del held

        return enqueue

    def _do(self, call: str, *arguments: object) -> None:
        function: Callable[..., int] = getattr(self._library, call)
        self._require(function(*arguments), call)

    def _require(self, status: int, call: str) -> None:
        if status:
            name = ctypes.c_char_p()
            self._library.cuGetErrorName(status, ctypes.byref(name))
            found = (name.value or b"an error").decode()
            raise ResultError(
                "RUNTIME_ERROR", f"the CUDA driver answered `{found}` ({status}) to `{call}`"
            )
