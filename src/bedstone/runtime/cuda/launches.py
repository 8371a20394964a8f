"""A capture's launches as the driver takes them: flat, laid out once, read by address.

    configuration   u32 grid x y z, block x y z, shared bytes, pad, u64 stream, attributes, u32 n
    attribute       u32 id, pad, 64 bytes of value
    parameters      a pointer to each: a word of the capture, or the image of a pack

What vars decide, grids and shared bytes, is copied from the capture's words when they change; its
arguments are read where they lie.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import DeviceError
from bedstone.runtime.image import LAUNCH_WORDS, Capture
from bedstone.runtime.lower import Kernel
from bedstone.spec.manifest import BytesParam

CONFIG = np.dtype(
    [
        ("grid", "<u4", 3),
        ("block", "<u4", 3),
        ("shared", "<u4"),
        ("_", "<u4"),
        ("stream", "<u8"),
        ("attributes", "<u8"),
        ("count", "<u4"),
        ("__", "<u4"),
    ]
)
_ATTRIBUTE = np.dtype([("id", "<u4"), ("_", "<u4"), ("value", "<u4", 16)])
_CLUSTER, _OVERLAP = 4, 6
_ENTRY, _ARGS, _GRID, _SHARED, _ACTIVE = 0, 1, slice(2, 5), 5, 6

Call = tuple[Callable[..., int], tuple[object, ...]]
"""Something that enqueues, and what to call it with; it answers with a status."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a handle stands for: a function with its geometry, or a built-in.

    A built-in is called with the words [params] of a launch when the launch is enqueued.
    """

    kernel: Kernel
    function: int = 0
    builtin: Callable[[NDArray[np.uint64]], int] | None = None
    attributes: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, _ATTRIBUTE))


def attributes_of(kernel: Kernel) -> NDArray[np.void]:
    """The attributes of a kernel's launches: its cluster, and that it may start early."""
    rows = []
    if kernel.cluster is not None:
        rows.append((_CLUSTER, 0, (*kernel.cluster, *[0] * 13)))
    if kernel.overlaps:
        rows.append((_OVERLAP, 0, (1, *[0] * 15)))
    return np.array(rows, _ATTRIBUTE)


class LaunchList:
    """The launches of a capture on one stream, in order; `launch` enqueues a kernel."""

    def __init__(
        self,
        capture: Capture,
        targets: Sequence[Target],
        stream: int,
        launch: Callable[..., int],
    ) -> None:
        self._launch = launch
        self._edition = -1
        count, first = capture.count, capture.first * LAUNCH_WORDS
        of_launches = capture.words[first : first + count * LAUNCH_WORDS]
        self._table = of_launches.reshape(count, LAUNCH_WORDS)
        self._targets = [targets[handle] for handle in self._table[:, _ENTRY].tolist()]
        self._configs = np.zeros(count, CONFIG)
        self._configs["stream"] = stream
        for config, target in zip(self._configs, self._targets, strict=True):
            config["block"] = target.kernel.block
            config["attributes"] = target.attributes.ctypes.data
            config["count"] = len(target.attributes)
        self._params = [
            _params(capture, int(args), target)
            for args, target in zip(self._table[:, _ARGS], self._targets, strict=True)
        ]
        # vars change what lies at these addresses and who runs, not the calls: a piece of a prompt
        # has other vars each time, and its launches are started one by one
        self._all = [self._call(index) for index in range(count)]
        self._calls: list[Call] = []
        self._indices: list[int] = []

    def enqueue(self, edition: int) -> None:
        """Enqueue every launch that is active under the assignment numbered `edition`.

        Raises `DeviceError`: the driver refused one.
        """
        if edition != self._edition:
            self._refresh(edition)
        for at, (call, args) in enumerate(self._calls):
            status = call(*args)
            if status:
                self._refused(at, status)

    def _refresh(self, edition: int) -> None:
        table = self._table
        self._configs["grid"] = table[:, _GRID]
        self._configs["shared"] = table[:, _SHARED]
        runs = (table[:, _ACTIVE] != 0) & table[:, _GRID].all(axis=1)
        self._indices = np.flatnonzero(runs).tolist()
        self._calls = [self._all[index] for index in self._indices]
        self._edition = edition

    def _call(self, index: int) -> Call:
        target, params = self._targets[index], self._params[index]
        if target.builtin is not None:
            return target.builtin, (params,)
        config = self._configs.ctypes.data + index * CONFIG.itemsize
        return self._launch, (config, target.function, params.ctypes.data, None)

    def _refused(self, at: int, status: int) -> None:
        index = self._indices[at]
        config = self._configs[index]
        raise DeviceError(
            f"launch #{index} (`{self._targets[index].kernel.entry}`) was refused with CUDA error "
            f"{status}: grid {config['grid'].tolist()}, block {config['block'].tolist()}, "
            f"{config['shared']} shared bytes"
        )


def _params(capture: Capture, args: int, target: Target) -> NDArray[np.uint64]:
    """Where each parameter's bytes lie; of a built-in the words themselves."""
    first = (args - capture.base) // 8
    words = capture.words[first : first + len(target.kernel.params)]
    if target.builtin is not None:
        return words
    return np.array(
        [
            word if isinstance(param, BytesParam) else args + 8 * index
            for index, (param, word) in enumerate(
                zip(target.kernel.params, words.tolist(), strict=True)
            )
        ],
        np.uint64,
    )
