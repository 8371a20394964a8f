"""A lowered program as 8 byte words in host memory: the form a device replays.

    launch table   count x 7 words: entry, args, grid x y z, shared bytes, active
    arguments      one word a parameter; a pack's word is the address of its image
    packs          each at a 64 byte boundary

What depends on vars is a list of *terms* (each distinct expression or condition once) and a list of
byte moves from the terms' values into the words, so binding another assignment of vars evaluates
each term once and is one scatter.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from math import prod

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from bedstone.errors import CallerError, ManifestError
from bedstone.runtime.lower import (
    Computed,
    Kernel,
    LoweredLaunch,
    LoweredProgram,
    MapSlot,
    PackSlot,
    Pointer,
    Slot,
    Word,
)
from bedstone.spec.expr import ExprError, evaluate
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Expr, TensorMap, When

LAUNCH_WORDS = 7
_ENTRY, _ARGS, _GRID, _SHARED, _ACTIVE = 0, 1, 2, 5, 6
_PACK_WORDS = 8
_U64_MAX = 2**64 - 1

Words = NDArray[np.uint64]
Indices = NDArray[np.intp]


class Linker(Frozen):
    """What lowering leaves open: where a pointer leads, a kernel's handle, a tensor map's bytes."""

    address: Callable[[Pointer], int]
    function: Callable[[Kernel], int]
    tensor_map: Callable[[TensorMap, Pointer], bytes]


class Term(Frozen):
    """A value that vars decide: an expression of at most `limit`, or 1 while a condition holds."""

    what: Expr | When
    limit: int = _U64_MAX

    def value(self, env: Mapping[str, int]) -> int:
        """The term's worth under `env`.

        Raises `CallerError`: the expression overflows or exceeds what its parameter holds.
        """
        if isinstance(self.what, When):
            return int(_holds(self.what, env[self.what.var]))
        try:
            value = evaluate(self.what, env)
        except ExprError as error:
            raise CallerError(f"`{self.what}` has no value at {dict(env)}: {error}") from error
        if value > self.limit:
            raise CallerError(
                f"`{self.what}` is {value} at {dict(env)}: its parameter holds {self.limit} at most"
            )
        return value


class Capture:
    """A program's words under one assignment of vars, placed at a fixed address.

    `edition` counts the assignments it has had; `kept` says that it will be replayed again and
    again under the one it has. `prepared` is what a device made of it, its own to use. Its launches
    are `count` from `first` on of those at `base`; they lie at `address`.
    """

    __slots__ = (
        "_bytes",
        "_image",
        "_words",
        "address",
        "base",
        "count",
        "edition",
        "first",
        "kept",
        "prepared",
    )

    def __init__(self, image: "Image", *, kept: bool = False) -> None:
        self._image = image
        self.kept = kept
        self.edition = 0
        self.prepared: object = None
        self._words = _aligned(image.words.size)
        self._bytes = self._words.view(np.uint8)
        self._words[:] = image.words
        self.address = self.base = self._words.ctypes.data
        self._words[image.inner_at] += np.uint64(self.base)
        self.first, self.count = 0, image.count

    @property
    def words(self) -> Words:
        """The words as they stand."""
        return self._words

    def bind(self, env: Mapping[str, int]) -> None:
        """Rewrite what vars decide."""
        image = self._image
        self.edition += 1
        if image.terms:
            values = np.array([term.value(env) for term in image.terms], np.uint64)
            self._bytes[image.patch_at] = values.view(np.uint8)[image.patch_from]

    def part(self, first: int, count: int) -> "Capture":
        """`count` of the launches from `first` on, as they stand; the words are shared."""
        found = copy(self)
        found.kept, found.prepared = False, None
        found.first += first
        found.address += 8 * LAUNCH_WORDS * first
        found.count = count
        return found


class Image(Frozen):
    """A program's words before vars are known; `inner_at` are those that point into the image."""

    words: Words
    count: int
    inner_at: Indices
    terms: tuple[Term, ...]
    patch_at: Indices
    patch_from: Indices


def build_image(program: LoweredProgram, linker: Linker) -> Image:
    """Lay out a lowered program with its addresses and functions filled in."""
    builder = _Builder(linker)
    builder.words.extend([0] * (LAUNCH_WORDS * len(program.launches)))
    for index, launch in enumerate(program.launches):
        builder.add(index, launch)
    return Image(
        words=np.array(builder.words, np.uint64),
        count=len(program.launches),
        inner_at=np.array(builder.inner, np.intp),
        terms=tuple(builder.terms),
        patch_at=np.array(builder.patch_at, np.intp),
        patch_from=np.array(builder.patch_from, np.intp),
    )


class _Builder(Struct):
    linker: Linker
    words: list[int] = field(default_factory=list)
    inner: list[int] = field(default_factory=list)
    terms: dict[Term, int] = field(default_factory=dict)
    patch_at: list[int] = field(default_factory=list)
    patch_from: list[int] = field(default_factory=list)

    def add(self, index: int, launch: LoweredLaunch) -> None:
        table = index * LAUNCH_WORDS
        self.words[table + _ENTRY] = self.linker.function(launch.kernel)
        args = len(self.words)
        self.point_inside(table + _ARGS, args)
        self.words.extend([0] * len(launch.slots))
        for offset, slot in enumerate(launch.slots):
            self.set_slot(args + offset, slot)
        for axis, extent in enumerate(launch.grid):
            self.set_expr(table + _GRID + axis, extent)
        self.set_expr(table + _SHARED, launch.shared)
        self.words[table + _ACTIVE] = 1
        if launch.when is not None:
            self.patch(8 * (table + _ACTIVE), 8, Term(launch.when))

    def set_slot(self, at: int, slot: Slot) -> None:
        if isinstance(slot, Pointer):
            self.words[at] = self.linker.address(slot)
        elif isinstance(slot, Word):
            self.words[at] = slot.value
        elif isinstance(slot, Computed):
            self.set_expr(at, slot.expr, slot.limit)
        else:
            self.point_inside(at, self.add_pack(slot))

    def set_expr(self, at: int, expr: Expr, limit: int = _U64_MAX) -> None:
        if isinstance(expr, int):
            self.words[at] = expr
        else:
            self.patch(8 * at, 8, Term(expr, limit))

    def add_pack(self, pack: PackSlot) -> int:
        """Lay the pack's image at the end; the index of its first word."""
        self.words.extend([0] * (-len(self.words) % _PACK_WORDS))
        start = len(self.words)
        image = bytearray(-(-pack.size // 8) * 8)
        for part in pack.fields:
            match part.slot:
                case MapSlot(tensor, over):
                    data = self.linker.tensor_map(tensor, over)
                case Computed(expr, limit):
                    self.patch(8 * start + part.at, min(part.width, 8), Term(expr, limit))
                    continue
                case _:
                    data = self.constant(part.slot).to_bytes(8, "little")
            used = data[: part.width]
            image[part.at : part.at + len(used)] = used
        self.words.extend(np.frombuffer(bytes(image), np.uint64).tolist())
        return start

    def constant(self, slot: Pointer | Word) -> int:
        return slot.value if isinstance(slot, Word) else self.linker.address(slot)

    def point_inside(self, at: int, word: int) -> None:
        self.words[at] = 8 * word
        self.inner.append(at)

    def patch(self, at: int, width: int, term: Term) -> None:
        index = self.terms.setdefault(term, len(self.terms))
        self.patch_at.extend(range(at, at + width))
        self.patch_from.extend(range(8 * index, 8 * index + width))


def largest_shared(
    programs: Sequence[LoweredProgram], upper: Mapping[str, int]
) -> dict[Kernel, int]:
    """The most bytes a block of each kernel shares, with every var at its maximum.

    Raises `ManifestError`: a launch's `shared_mem` has no value there.
    """
    most: dict[Kernel, int] = {}
    for launch in (launch for program in programs for launch in program.launches):
        most[launch.kernel] = max(most.get(launch.kernel, 0), _shared(launch, upper))
    return most


def largest_grids(
    programs: Sequence[LoweredProgram], upper: Mapping[str, int]
) -> dict[Kernel, int]:
    """The most blocks of each kernel's launches, with every var at its maximum.

    Raises `ManifestError`: a launch's grid has no value there.
    """
    most: dict[Kernel, int] = {}
    for launch in (launch for program in programs for launch in program.launches):
        most[launch.kernel] = max(most.get(launch.kernel, 0), _blocks(launch, upper))
    return most


def _blocks(launch: LoweredLaunch, upper: Mapping[str, int]) -> int:
    try:
        return prod(evaluate(extent, upper) for extent in launch.grid)
    except ExprError as error:
        raise ManifestError(f"{launch.site}: grid at var upper bounds: {error}") from error


def _shared(launch: LoweredLaunch, upper: Mapping[str, int]) -> int:
    try:
        return evaluate(launch.shared, upper)
    except ExprError as error:
        raise ManifestError(f"{launch.site}: shared_mem at var upper bounds: {error}") from error


def _holds(when: When, value: int) -> bool:
    return (when.min is None or value >= when.min) and (when.max is None or value <= when.max)


def _aligned(count: int) -> Words:
    """Zeroed words on a 64 byte boundary."""
    raw = np.zeros(count + _PACK_WORDS, np.uint64)
    skip = -raw.ctypes.data % 64 // 8
    return raw[skip : skip + count]
