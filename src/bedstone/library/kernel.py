"""What the compiler must know of a kernel to launch it: parameters, geometry and where it lies."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from bedstone.library.coding import INT8, Coding
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


ONE_THREAD = (1, 1, 1)
"""The block of a CPU's kernel."""

TABLES = frozenset({"table", "k", "v", "kt"})
"""States that are paged tables; what others hold is float32 whatever tables do."""

MAPS = "maps"
"""The parameter behind an entry's own that holds the tensor maps of its boxes, 128 bytes each."""


PARTS = "parts"
"""The parameter of stages that holds what one of them leaves for the next."""

BOX_VALUES = 64
"""Values of k of a box: 128 bytes, the most that a swizzle spans."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """How the copy engine reads a bf16 matrix: by boxes of `height` rows, swizzled.

    The matrix is `param`, its rows are as many as parameter `rows` says, or as a table has, and as
    many values wide as the parameters `width` multiply to.
    """

    param: str
    rows: str | None
    height: int
    width: tuple[str, ...] = ("k",)


@dataclass(frozen=True, slots=True)
class Geometry:
    """How a kernel of a GPU is launched, missing grid extents being 1, and what it takes of one.

    `source` is the file it is compiled from, where that is not called as the CPU's; `function` what
    it is called there, where its entry's name is taken. `only` names it where its module is to hold
    nothing else of the source, and `defines` what else tells it from others. One that `rounds` is
    other code where tables are rounded, though it may touch none; where that is launched otherwise,
    `rounded` is how, by devices with clusters. `roomy` is taken in its place on hopper, where a
    block may share more than 99 KB.
    """

    block: tuple[int, int, int]
    grid: tuple[Extent, ...]
    shared: Shared | None = None
    cluster: tuple[int, int, int] | None = None
    source: str | None = None
    function: str | None = None
    boxes: tuple[Boxes, ...] = ()
    only: str | None = None
    rounds: bool = False
    rounded: "Geometry | None" = None
    defines: tuple[tuple[str, str], ...] = ()
    roomy: "Geometry | None" = None


@dataclass(frozen=True, slots=True)
class Dim:
    """An extent of memory that is a call's own.

    A product of parameters over `per`, rounded up, and `more`.
    """

    params: tuple[str, ...]
    per: int = 1
    more: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """One launch of a kernel: an entry, its parameters in its own order, and its geometry."""

    entry: str
    params: tuple[Param, ...]
    grid: tuple[Extent, Extent, Extent]
    shared: Shared | None = None

    @property
    def abi(self) -> str:
        """The parameter types as the compiled entry exports them."""
        return ", ".join(str(param.type) for param in self.params)


Suits = Callable[[Mapping[str, int], CacheType], bool]
"""Whether a kernel is the one for a launch of these sizes, each the most it can be."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Another kernel, by the suffix of its name, for launches that it suits.

    It takes the parameters of each entry that `pattern` matches and computes the same.
    """

    pattern: str
    suffix: str
    suits: Suits


Settled = int | float | tuple[str, ...]
"""What a number always is: itself, or the product of others by name."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A launch among those that one kernel does: its entry, and what its parameters are there.

    `names` gives a parameter's by its own, where they differ. What has one name is one.
    """

    entry: str
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Joining:
    """A kernel by the name `entry` that does what launches of `taken` do, in order.

    Of their parameters it has no `handed` ones, the tensors that one of them makes and nobody but
    others of them reads, nor those whose number is `settled`; the others are in `order`, or in that
    of the launches. A `roomy` one is hopper's.
    """

    kind: str
    entry: str
    taken: tuple[Taken, ...]
    handed: frozenset[str]
    geometry: Geometry
    suits: Suits
    settled: Mapping[str, Settled] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    roomy: bool = False


@dataclass(frozen=True, slots=True)
class Kernel:
    """One entry of a module.

    `module` labels the file it is compiled into, from `source` with `defines`; kernels of one
    module share both. One with `pdl` waits by itself for the launch before it. One in `stages` is
    launches of entries of its module: they take its parameters by name, and memory that is the
    call's own, f32 values of the extents in `parts`. Where there is a `layer` the kernel of that
    name has laid its matrices before.
    """

    entry: str
    module: str
    source: str
    defines: Mapping[str, str]
    params: tuple[Param, ...]
    grid: tuple[Extent, Extent, Extent]
    shared: Shared | None = None
    block: tuple[int, int, int] = ONE_THREAD
    cluster: tuple[int, int, int] | None = None
    pdl: bool = False
    boxes: tuple[Boxes, ...] = ()
    stages: tuple[Stage, ...] = ()
    parts: Mapping[str, tuple[Dim, ...]] = field(default_factory=dict)
    layer: str | None = None

    @property
    def abi(self) -> str:
        """The parameter types as the compiled entry exports them."""
        return ", ".join(str(param.type) for param in self.params)

    @property
    def launches(self) -> tuple[Stage, ...]:
        """The launches it takes, in order."""
        return self.stages or (Stage(self.entry, self.params, self.grid, self.shared),)


@dataclass(frozen=True, slots=True)
class Join:
    """A kernel that does what launches of several entries do, one after the other.

    `taken` names every parameter of each; `handed` are the tensors that it leaves nowhere, and
    `settled` the numbers it takes for granted. A census counts it as of that `kind`.
    """

    kind: str
    taken: tuple[Taken, ...]
    kernel: Kernel
    handed: frozenset[str]
    settled: Mapping[str, Settled]
    suits: Suits


@dataclass(frozen=True, slots=True)
class KernelSet:
    """Kernels by entry, how they code activations, and what the values of a paged table are.

    `variants` names, for an entry, kernels to take in its place: the first that suits. `joins` are
    kernels for several launches by name, those for most first. `laid` names, for an entry, the
    kernel that does the same by matrices that were laid for it.
    """

    name: str
    kernels: Mapping[str, Kernel]
    cache: CacheType = "f32"
    coding: Coding = INT8
    variants: Mapping[str, tuple[tuple[str, Suits], ...]] = field(default_factory=dict)
    joins: Mapping[str, Join] = field(default_factory=dict)
    laid: Mapping[str, str] = field(default_factory=dict)

    def get(self, entry: str) -> Kernel | None:
        """The kernel of that entry, or None where the set has none."""
        return self.kernels.get(entry)

    def suited(self, entry: str, sizes: Mapping[str, int]) -> Kernel | None:
        """The kernel for a launch of that entry, whose integers are `sizes` at most."""
        found = (name for name, suits in self.variants.get(entry, ()) if suits(sizes, self.cache))
        return self.kernels.get(next(found, entry))

    @property
    def every(self) -> Iterator[Kernel]:
        """Each kernel, those of joins among them."""
        yield from (kernel for _, kernel in self.named)

    @property
    def named(self) -> Iterator[tuple[str, Kernel]]:
        """Each kernel by what the set calls it."""
        yield from self.kernels.items()
        yield from ((name, join.kernel) for name, join in self.joins.items())

    def alike(self, entry: str) -> Iterator[tuple[str, Join]]:
        """The joins whose kernels are the same but for how they are launched."""
        return ((n, join) for n, join in self.joins.items() if join.kernel.entry == entry)
