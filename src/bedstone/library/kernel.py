"""What the compiler must know of a kernel to launch it: parameters, geometry and where it lies."""

from collections.abc import Mapping
from dataclasses import dataclass

from bedstone.spec.manifest import ParamType


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter; `name` is what a lane binds by, the order is the entry's own."""

    name: str
    type: ParamType


@dataclass(frozen=True, slots=True)
class Extent:
    """One grid extent: `ceil(value(param) / per)` blocks, or 1 where no param decides."""

    param: str | None = None
    per: int = 1


@dataclass(frozen=True, slots=True)
class Shared:
    """Scratch of one grid block: `bytes` plus, for each (param, bytes), its value times that."""

    bytes: int
    per: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Kernel:
    """One entry of a module.

    `module` labels the file it is compiled into, from `source` with `defines`; kernels of one
    module share both.
    """

    entry: str
    module: str
    source: str
    defines: Mapping[str, str]
    params: tuple[Param, ...]
    grid: tuple[Extent, Extent, Extent]
    shared: Shared | None = None

    @property
    def abi(self) -> str:
        """The parameter types as the compiled entry exports them."""
        return ", ".join(str(param.type) for param in self.params)


@dataclass(frozen=True, slots=True)
class KernelSet:
    """Kernels by entry."""

    name: str
    kernels: Mapping[str, Kernel]

    def get(self, entry: str) -> Kernel | None:
        """The kernel of that entry, or None where the set has none."""
        return self.kernels.get(entry)
