"""The kernels that the steps of known models call, and at which sizes: Workloads of our own.

A plan is made of every form of a model's step, fused and not, precise and quantized. Sizes that
decide only how long a call takes are then made small by `scaled`, so that tests end; every size
that decides how a kernel works stays: widths summed over, heads, experts chosen, windows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import get_args

from bedstone.build.lane import Lane, target_lane
from bedstone.build.launches import launches
from bedstone.build.protocol import PAGE
from bedstone.build.request import Options, served_forms
from bedstone.build.step import plan_step
from bedstone.checkpoint.shapes import Shape, ShapeCheckpoint, shape_checkpoint
from bedstone.lane.plan import RULES
from bedstone.lane.schedule import Numerics
from bedstone.library.kernel import ONE_THREAD, CacheType, Kernel, KernelSet, Suits
from bedstone.library.mathematics import family_of, reaches
from bedstone.library.product import suits_panels
from bedstone.spec.dtype import FORMATS, Format, FormatName

SEQUENCES = 3
CONTEXT = 4096
_WAYS: tuple[tuple[FormatName, Numerics], ...] = (
    ("bf16", "precise"),
    ("q8_0", "precise"),
    ("q8_0", "quantized"),
)
HELD = tuple(
    (fmt, Options(numerics, CONTEXT, held, SEQUENCES))
    for fmt, numerics in _WAYS
    for held in ((), RULES)
)
"""How the matrices are held, and what of the lane is held back, in the plans that are made."""

ANY_CPU = "cpu-generic"
"""All CPU sets plan alike: they differ in code, not in contract."""

_WIDTHS = (64, 128, 256)
_ROWS: tuple[dict[str, int], ...] = ({}, {"rows": 12}, {"rows": 80, "slots": 84, "k": 576})
"""What variants are for: widths of heads, and how many rows. Many rows have a Definition of their
own: what is for few would be tried at them."""

MOST_ROWS = 37
MOST_ROWS_BY_TILES = 80
"""The same of a GPU's products, some of which are for more than 64."""

MOST_WEIGHTS = 1 << 19
"""Values of one launch's matrices together, where fewer outputs will do."""

_TILE = 32
_SMALL: dict[str, int] = {
    "rows": MOST_ROWS, "row": MOST_ROWS, "count": 1 << 14, "pages_width": 5, "window": 50,
    "capacity": 200,
}  # fmt: skip
"""The most of sizes that repeat what a kernel does."""

_FREE: dict[str, int] = {
    "slots": 41, "vocab": 97, "stored": MOST_ROWS, "capacity": 64, "lines": SEQUENCES + 2,
    "length": 2 * MOST_ROWS, "page": PAGE, "pages_width": 4,
}  # fmt: skip
"""Axes that are no parameters: rows of tables, positions of a rotation, lines of a state."""

_ROWS_BY_TILES = {"rows": MOST_ROWS_BY_TILES}
_SLOTS_BY_TILES = {"slots": MOST_ROWS_BY_TILES + 4}

_OUTPUTS = ("n", "n0", "n1", "n2", "n3", "sn")

Numbers = Mapping[str, int | float]

Progress = Callable[[str, int, int], None]
"""Told what is planned next, its number and of how many."""


@dataclass(frozen=True, slots=True)
class Called:
    """A kernel at some sizes: a number for each scalar parameter, and for its other axes."""

    entry: str
    numbers: tuple[tuple[str, int | float], ...]

    def sizes(self) -> dict[str, int | float]:
        """The numbers by name."""
        return dict(self.numbers)


def planned_calls(shape: Shape, options: Options, lane: Lane) -> Iterator[Called]:
    """What every form of a model's step calls, as it is planned, and its launches one by one."""
    kernels = lane.kernels
    # some are compiled under another name than the catalog's
    names = {id(kernel): name for name, kernel in kernels.kernels.items()}
    for form in served_forms(options):
        schedule = plan_step(shape, form, options, lane).schedule
        for held in (replace(kernels, joins={}), kernels) if kernels.joins else (kernels,):
            for kernel, numbers in launches(schedule, held, CONTEXT):
                call = replace(called(kernel, numbers), entry=names.get(id(kernel), kernel.entry))
                yield call
                yield from _laid(call, kernels)


def _laid(call: Called, kernels: KernelSet) -> Iterator[Called]:
    """The call by matrices that were laid for it, where a step of several sequences makes that."""
    laid = kernels.laid.get(call.entry)
    if laid is not None and suits_panels(_whole_numbers(call.sizes())):
        yield replace(call, entry=laid)


def called(kernel: Kernel, numbers: Mapping[str, int | float]) -> Called:
    """A kernel at these sizes."""
    return Called(kernel.entry, tuple(sorted(numbers.items())))


def shallow(shape: ShapeCheckpoint) -> ShapeCheckpoint:
    """The model cut off where its layers, and what follows on each, begin to repeat."""
    config = shape.config
    sparse = () if config.mixture is None else config.mixture.layers
    kinds = [(config.kind(layer), layer in sparse) for layer in range(config.layers)]
    pairs = list(pairwise(kinds))
    last = max((pairs.index(pair) for pair in set(pairs)), default=0)
    layers = min(config.layers, last + 3)
    mixture = config.mixture
    if mixture is not None:
        mixture = replace(mixture, layers=tuple(at for at in mixture.layers if at < layers))
    cut = replace(config, layers=layers, layer_kinds=config.layer_kinds[:layers], mixture=mixture)
    return replace(shape, config=cut)


# --- small sizes ----------------------------------------------------------------------------------


def scaled(call: Called, kernel: Kernel) -> Called:
    """The same call with less of what only repeats: rows, outputs, matrices, positions."""
    numbers = dict(call.numbers)
    by_tiles = kernel.block != ONE_THREAD and format_of(kernel) is not None
    most, axes = (_SMALL | _ROWS_BY_TILES, _FREE | _SLOTS_BY_TILES) if by_tiles else (_SMALL, _FREE)
    free = {n: v for n, v in axes.items() if n not in numbers}
    small = {n: min(v, most.get(n, v)) for n, v in numbers.items()}
    small["stack"] = int(small.get("chosen", 1)) + 3
    if any(p.name in ("w", "w0", "wg") for p in kernel.params):
        outputs = _most_outputs(small, kernel)
        small |= {n: _fewer(int(small[n]), outputs) for n in _OUTPUTS if n in small}
    whole = {n: v for n, v in small.items() if isinstance(v, int)}
    for row, reach in reaches(kernel, family_of(kernel.entry), whole).items():
        # of one row nobody asks where the next begins: it need not lie behind what is read
        small[row] = max(small[row], reach)
    return Called(call.entry, tuple(sorted({**free, **small}.items())))


def _most_outputs(numbers: Numbers, kernel: Kernel) -> int:
    """Outputs of one matrix: what all of a launch may hold, over their number and width."""
    matrices = sum(p.name in ("w", "w0", "w1", "w2", "w3", "wg", "wu") for p in kernel.params)
    stack = int(numbers["stack"]) if kernel.entry.startswith("x") else int(numbers.get("heads", 1))
    return int(MOST_WEIGHTS // (matrices * stack * int(numbers.get("k", 1))))


def _fewer(outputs: int, most: int) -> int:
    """At most `most` outputs but two tiles at least, and what was beyond whole tiles before."""
    if outputs <= max(most, 2 * _TILE):
        return outputs
    return max(most // _TILE, 2) * _TILE + outputs % _TILE


# --- every format ---------------------------------------------------------------------------------


def in_every_format(call: Called, kernel: Kernel, kernels: KernelSet) -> Iterator[Called]:
    """The call with matrices held in each format that its widths allow.

    Itself where it has no matrices, or where a kernel does several launches: those are of one.
    """
    own = format_of(kernel)
    if own is None or kernels.get(call.entry) is None:
        yield call
        return
    for fmt in FORMATS.values():
        name = in_format(call.entry, own, fmt)
        if kernels.get(name) is not None and _whole(call, kernel, fmt):
            yield Called(name, call.numbers)


def format_of(kernel: Kernel) -> Format | None:
    """The format that a kernel is compiled for."""
    name = kernel.defines.get("BS_FORMAT", "").removeprefix("BS_").lower()
    return FORMATS.get(name)  # type: ignore[call-overload,no-any-return]


def in_format(name: str, own: Format, other: Format) -> str:
    """An entry's name with another format in it."""
    return f"{name}_".replace(f"_{own.name}_", f"_{other.name}_", 1)[:-1]


def _whole(call: Called, kernel: Kernel, fmt: Format) -> bool:
    """Whether rows of the matrices are whole blocks."""
    numbers = call.sizes()
    across = "n" if "hlinear_t" in kernel.entry else "k" if "k" in numbers else "width"
    widths = [numbers[name] for name in (across, "sn") if name in numbers]
    down = "xdown_s" in kernel.entry
    return all(int(width) % fmt.block == 0 for width in (widths if down else widths[:1]))


def planned_in_every_way(
    names: Sequence[str],
    kernels: KernelSet,
    progress: Progress = lambda _name, _done, _total: None,
    target: str = ANY_CPU,
) -> Iterator[Called]:
    """Every distinct call of these models' steps, small, in every format.

    `kernels` are those that the target takes for some numerics; of other numerics nothing is told.
    """
    seen: set[Called] = set()
    ways = [(name, fmt, options) for name in names for fmt, options in HELD]
    for at, (name, fmt, options) in enumerate(ways):
        progress(name, at + 1, len(ways))
        lane = target_lane(target, options.numerics)
        if lane.kernels is not kernels:
            continue
        shape = shallow(shape_checkpoint(name, fmt))
        lane = lane.unfused if options.held else lane
        for planned in dict.fromkeys(planned_calls(shape, options, lane)):
            kernel = kernel_of(planned.entry, kernels)
            found = set(in_every_format(scaled(planned, kernel), kernel, kernels))
            yield from sorted(found - seen, key=lambda call: call.entry)
            seen |= found


def kernel_of(entry: str, kernels: KernelSet) -> Kernel:
    """A set's kernel of that entry, or one that does several launches."""
    own = kernels.get(entry)
    return own if own is not None else next(join.kernel for _, join in kernels.alike(entry))


def untouched(calls: Iterable[Called], kernels: KernelSet) -> Iterator[Called]:
    """What no plan calls, at the small sizes of its mathematics; a variant at sizes it is for."""
    held = list(calls)
    planned = {call.entry for call in held}
    variants = {name for rows in kernels.variants.values() for name, _ in rows}
    for name in kernels.kernels:
        if name not in planned | variants:
            yield _small(name, {})
    for entry, name, suits in _suited(kernels):
        sizes = [call.sizes() for call in held if call.entry == entry]
        if not any(suits(_whole_numbers(each), kernels.cache) for each in sizes):
            yield from _of_variant(entry, name, suits, kernels.cache)


def _suited(kernels: KernelSet) -> Iterator[tuple[str, str, Suits]]:
    """Every kernel that is for some sizes of an entry alone."""
    for entry, rows in kernels.variants.items():
        yield from ((entry, name, suits) for name, suits in rows)
    yield from ((join.kernel.entry, name, join.suits) for name, join in kernels.joins.items())


def _small(entry: str, changed: Mapping[str, int]) -> Called:
    family = family_of(entry)
    return Called(entry, tuple(sorted({**family.defaults, **family.sizes, **changed}.items())))


def _of_variant(entry: str, name: str, suits: Suits, cache: CacheType) -> Iterator[Called]:
    """A small call that a variant is for; by its own name where none is, unless of other tables."""
    own = family_of(entry).sizes
    changes = ({**heads, **rows} for heads, rows in product(({}, *map(_heads_of, _WIDTHS)), _ROWS))
    calls = [_small(entry, {n: v for n, v in each.items() if n in own}) for each in changes]
    numbers = [_whole_numbers(call.sizes()) for call in calls]
    found = [call for call, each in zip(calls, numbers, strict=True) if suits(each, cache)]
    if found:
        yield found[0]
    elif not any(suits(each, tables) for each in numbers for tables in get_args(CacheType)):
        yield _small(name, {})


def _heads_of(width: int) -> dict[str, int]:
    """Sizes of attention whose keys and values are so wide, four heads with a gate each."""
    turned = {"head_dim": width, "rot": width}
    gate = {"gate_row": 4 * (width + 2), "gate_unit": width + 2, "gate_width": width}
    return {"dk": width, "dv": width, **turned, **gate}


def _whole_numbers(numbers: Mapping[str, int | float]) -> dict[str, int]:
    return {name: value for name, value in numbers.items() if isinstance(value, int)}
