"""What the compiler must know of a kernel to launch it: parameters, geometry and where it lies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bedstone.spec.manifest import ParamType

CacheType = Literal["f32", "bf16"]
"""What the values of a paged table are; those of a recurrent state are f32."""


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter; `name` is what a lane binds by, the order is the entry's own."""

    name: str
    type: ParamType


@dataclass(frozen=True, slots=True)
class Extent:
    """One grid extent: `times * ceil(value(param) / per)` blocks, or `times` of no param."""

    param: str | None = None
    per: int = 1
    times: int = 1


@dataclass(frozen=True, slots=True)
class Shared:
    """Scratch of one grid block: `bytes` plus, for each (param, bytes), its value times that."""

    bytes: int
    per: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Geometry:
    """How a kernel of a GPU is launched, missing grid extents being 1, and what it takes of one.

    `source` is the file it is compiled from, where that is not called as the CPU's.
    """

    block: tuple[int, int, int]
    grid: tuple[Extent, ...]
    shared: Shared | None = None
    cluster: tuple[int, int, int] | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Kernel:
    """One entry of a module.

    `module` labels the file it is compiled into, from `source` with `defines`; kernels of one
    module share both. One with `pdl` waits by itself for the launch before it.
    """

    entry: str
    module: str
    source: str
    defines: Mapping[str, str]
    params: tuple[Param, ...]
    grid: tuple[Extent, Extent, Extent]
    shared: Shared | None = None
    block: tuple[int, int, int] = (1, 1, 1)
    cluster: tuple[int, int, int] | None = None
    pdl: bool = False

    @property
    def abi(self) -> str:
        """The parameter types as the compiled entry exports them."""
        return ", ".join(str(param.type) for param in self.params)


@dataclass(frozen=True, slots=True)
class KernelSet:
    """Kernels by entry, and what they take the values of a paged table for."""

    name: str
    kernels: Mapping[str, Kernel]
    cache: CacheType = "f32"

    def get(self, entry: str) -> Kernel | None:
        """The kernel of that entry, or None where the set has none."""
        return self.kernels.get(entry)
