"""Modules on the device, by the hash of their bytes, and the functions of launches.

One file may hold several functions of one name: containers for several architectures, or one kernel
compiled for several types. The launch's parameters say which of them is meant.
"""

import contextlib
from collections.abc import Sequence
from math import prod

from bedstone.errors import KernelError, TargetError
from bedstone.runtime.cuda.driver import FOREIGN_CODE, CudaError, Driver
from bedstone.runtime.cuda.fit import Fit, judge, remedy
from bedstone.runtime.cuda.ptx import newest_isa
from bedstone.runtime.lower import Kernel
from bedstone.runtime.modules import Artifact
from bedstone.spec.param import param_bytes
from bedstone.target.architecture import spelled_capability
from bedstone.target.hardware import read_sets
from bedstone.target.ptx import Isa

_PORTABLE_CLUSTER = 8

MEETING = "bs_arrivals"
"""The variable of a module whose kernels' blocks wait for each other."""


class Modules:
    """What a device has loaded. `newest` is the PTX that its driver takes."""

    def __init__(self, driver: Driver, newest: Isa | None = None) -> None:
        self._driver = driver
        self._newest = newest or newest_isa(driver.facts.version)
        self._loaded: dict[str, tuple[int, ...]] = {}
        self._meeting: dict[int, str] = {}

    def function(self, artifact: Artifact, kernel: Kernel) -> int:
        """The function that takes exactly what the launch passes, ready for its geometry.

        Raises `KernelError`: the module has none, or none that takes that or that many threads.
        Raises `TargetError`: the module's code is not for this device or driver.
        """
        where = f"kernel `{kernel.entry}` of module `{artifact.module}` (`{artifact.path}`)"
        found = {
            function: module
            for module in self._modules(artifact, where)
            if (function := self._driver.function(module, kernel.entry)) is not None
        }
        if not found:
            raise KernelError(f"{where}: the module has no such function")
        function = self._fitting(list(found), kernel, where)
        self._require_geometry(function, kernel, where)
        if self._driver.has(found[function], MEETING):
            self._meeting[function] = where
        return function

    def require_together(self, function: int, kernel: Kernel, blocks: int, shared: int) -> None:
        """Require that blocks which wait for each other run all at once.

        Raises `TargetError`: the device does not hold as many as there are.
        """
        if function not in self._meeting:
            return
        threads = prod(kernel.block)
        most = self._driver.blocks_at_once(function, threads, shared)
        if blocks > most:
            raise TargetError(
                f"{self._meeting[function]}: its {blocks} blocks wait for each other, and GPU "
                f"`{self._driver.facts.name}` (or the slice of it that this process has) holds "
                f"{most} of them at once: compile the package with numerics `precise`, whose "
                "launches are apart"
            )

    def misfit(self, artifact: Artifact) -> str | None:
        """Why none of a module's code runs here, and what to do; nothing is loaded.

        Raises `KernelError`: it holds no device code.
        """
        fit = self._judge(artifact)
        if fit.images:
            return None
        return f"module `{artifact.module}` (`{artifact.path}`): {self._foreign(fit.refused)}"

    def close(self) -> None:
        """Unload everything."""
        for modules in self._loaded.values():
            for module in modules:
                with contextlib.suppress(CudaError):  # after a fault every call answers with it
                    self._driver.unload(module)
        self._loaded.clear()

    def _modules(self, artifact: Artifact, where: str) -> tuple[int, ...]:
        loaded = self._loaded.get(artifact.sha256)
        if loaded is None:
            loaded = self._load(artifact, where)
            self._loaded[artifact.sha256] = loaded
        return loaded

    def _load(self, artifact: Artifact, where: str) -> tuple[int, ...]:
        fit = self._judge(artifact)
        modules: list[int] = []
        refused = list(fit.refused)
        for image in fit.images:
            try:
                modules.append(self._driver.load(image.data))
            except CudaError as error:
                if error.code not in FOREIGN_CODE:
                    raise
                refused.append(f"{image.form} of {len(image.data)} bytes: `{error.code}`")
        if not modules:
            raise TargetError(f"{where}: {self._foreign(refused)}")
        return tuple(modules)

    def _judge(self, artifact: Artifact) -> Fit:
        return judge(artifact, self._driver.facts.capability, self._newest)

    def _foreign(self, refused: Sequence[str]) -> str:
        facts = self._driver.facts
        archs = [(each.name, each.arch) for each in read_sets().values() if each.form == "cubin"]
        return (
            f"none of its code is for GPU `{facts.name}` (compute capability "
            f"{spelled_capability(facts.capability)}): {', '.join(refused)}; "
            f"{remedy(facts.capability, archs)}"
        )

    def _fitting(self, functions: list[int], kernel: Kernel, where: str) -> int:
        wanted = tuple(param_bytes(param) for param in kernel.params)
        layouts = {function: self._driver.param_sizes(function) for function in functions}
        for function, layout in layouts.items():
            if layout == wanted:
                return function
        seen = "; ".join(dict.fromkeys(_spelled(layout) for layout in layouts.values()))
        raise KernelError(
            f"{where} has another ABI than its launch: the launch passes {_spelled(wanted)}, the "
            f"kernel takes {seen}"
        )

    def _require_geometry(self, function: int, kernel: Kernel, where: str) -> None:
        threads = prod(kernel.block)
        most = self._driver.most_threads(function)
        if threads > most:
            raise KernelError(
                f"{where}: its launch has blocks of {threads} threads, it was compiled for "
                f"{most} at most"
            )
        a, b, c = kernel.cluster or (1, 1, 1)
        if a * b * c > _PORTABLE_CLUSTER:
            self._driver.allow_large_clusters(function)
        if kernel.overlaps:
            # a multiprocessor divides its memory anew only when it is idle: launches that are to
            # meet on one must all want the same division
            self._driver.prefer_shared(function)


def _spelled(layout: tuple[int, ...]) -> str:
    """Bytes of each parameter, as a message shows them."""
    return f"[{', '.join(map(str, layout))}] bytes"
