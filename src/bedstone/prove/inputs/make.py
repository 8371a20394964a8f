"""The values of one seed: every recipe as tensors, the same on every machine and device."""

import hashlib
from collections.abc import Callable, Mapping
from math import gcd

import torch

from bedstone.prove.inputs.recipe import (
    Bytes,
    Coins,
    Distinct,
    Fixed,
    Integers,
    Normal,
    Offsets,
    PackedRows,
    Probabilities,
    Recipe,
    Uniform,
)
from bedstone.prove.tensors import Made, stored_shape, torch_dtype
from bedstone.spec.axes import Shape

_EIGHT_BIT_RANGE = 2.0
_PADDED_ROWS = 4
_PEAK = 3.0
_SIGN_RUN = 64
_SIGN_BITS = {
    torch.iinfo(dtype).bits // 8: torch.tensor(torch.iinfo(dtype).min, dtype=dtype)
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64)
}


def seed_of(*parts: object) -> int:
    """A seed that depends on every part and on nothing else."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def make(
    recipe: Recipe, dtype: str, shape: Shape | None, seed: int, others: Mapping[str, Made]
) -> Made:
    """The values a recipe gives under a seed.

    Args:
        recipe: What is wanted.
        dtype: The element type, as the Definition names it.
        shape: Sizes in values; None for a scalar.
        seed: Decides every value.
        others: Inputs made before, by name.

    Returns:
        A contiguous tensor on the CPU, or a number where `shape` is None.
    """
    random = torch.Generator().manual_seed(seed)
    maker: Callable[..., torch.Tensor] = _MAKERS[type(recipe)]
    wanted = () if shape is None else shape
    made = maker(recipe, _Wanted(dtype, wanted, random, others))
    if shape is None:
        number: bool | int | float = made.item()
        return number
    return made.contiguous()


def with_other_signs(base: torch.Tensor, seed: int) -> torch.Tensor:
    """`base` with the signs of its short runs drawn anew: fresh values at the price of a copy.

    Only for values as likely as their negatives. The signs are bits, so every element type does.
    """
    bits = _SIGN_BITS[base.dtype.itemsize]
    run = gcd(base.numel(), _SIGN_RUN)
    random = torch.Generator().manual_seed(seed)
    flips = torch.randint(0, 2, (base.numel() // run, 1), generator=random, dtype=bits.dtype)
    runs = base.reshape(-1, run).view(bits.dtype)
    return torch.bitwise_xor(runs, flips * bits).view(base.dtype).reshape(base.shape)


class _Wanted:
    """What a maker is asked for: element type, sizes, a source of randomness, earlier inputs."""

    def __init__(
        self, dtype: str, shape: Shape, random: torch.Generator, others: Mapping[str, Made]
    ) -> None:
        self.dtype = torch_dtype(dtype)
        self.name = dtype
        self.shape = shape
        self.random = random
        self.others = others

    def normal(self) -> torch.Tensor:
        return torch.randn(self.shape, generator=self.random)

    def uniform(self, low: float, high: float) -> torch.Tensor:
        return torch.rand(self.shape, generator=self.random) * (high - low) + low

    def integers(self, low: int, high: int, shape: Shape | None = None) -> torch.Tensor:
        sizes = self.shape if shape is None else shape
        return torch.randint(low, max(high, low + 1), sizes, generator=self.random)

    def cast(self, values: torch.Tensor) -> torch.Tensor:
        if self.dtype.itemsize == 1 and self.dtype.is_floating_point:
            values = values.clamp(-_EIGHT_BIT_RANGE, _EIGHT_BIT_RANGE)
        return values.to(self.dtype)


def _normal(recipe: Normal, wanted: _Wanted) -> torch.Tensor:
    values = wanted.normal()
    if recipe.unit and values.dim():
        values = values / values.norm(dim=-1, keepdim=True).clamp_min(1e-6)
    return wanted.cast(values * recipe.std + recipe.mean)


def _uniform(recipe: Uniform, wanted: _Wanted) -> torch.Tensor:
    return wanted.cast(wanted.uniform(recipe.low, recipe.high))


def _integers(recipe: Integers, wanted: _Wanted) -> torch.Tensor:
    return wanted.cast(wanted.integers(recipe.low, recipe.high))


def _distinct(recipe: Distinct, wanted: _Wanted) -> torch.Tensor:
    *lead, width = wanted.shape or (1,)
    rows = [_distinct_row(recipe, wanted, width) for _ in range(_product(lead))]
    stacked = torch.stack(rows) if rows else torch.empty((0, width), dtype=torch.int64)
    return wanted.cast(stacked.reshape(wanted.shape))


def _distinct_row(recipe: Distinct, wanted: _Wanted, width: int) -> torch.Tensor:
    if width <= recipe.below:
        row = torch.randperm(recipe.below, generator=wanted.random)[:width]
    elif recipe.padded:
        row = torch.full((width,), -1)
        row[: recipe.below] = torch.randperm(recipe.below, generator=wanted.random)
    else:
        row = wanted.integers(0, recipe.below, (width,))
    if recipe.padded and int(wanted.integers(0, _PADDED_ROWS, ())) == 0:
        row[int(wanted.integers(1, width + 1, ())) :] = -1
    return row


def _offsets(recipe: Offsets, wanted: _Wanted) -> torch.Tensor:
    count = wanted.shape[0] - 1
    if count < 1:
        return wanted.cast(torch.zeros(wanted.shape))
    least = _least(recipe, wanted, count)
    spare = recipe.total - int(least.sum())
    lengths = least + _divided(spare, count, wanted)
    offsets = torch.zeros(count + 1, dtype=torch.int64)
    offsets[1:] = lengths.cumsum(0)
    return wanted.cast(offsets)


def _least(recipe: Offsets, wanted: _Wanted, count: int) -> torch.Tensor:
    """The least length of each sequence that still fits together into the total."""
    choices = [torch.zeros(count, dtype=torch.int64)]
    choices.append(torch.ones(count, dtype=torch.int64))
    companion = wanted.others.get(recipe.companion or "")
    if isinstance(companion, torch.Tensor) and companion.shape[0] == count + 1:
        rows = companion.to(torch.int64).diff()
        # the last page may hold as little as one row
        choices.append((rows + 2 * (recipe.page - 1)) // recipe.page)
    fitting = [least for least in choices if int(least.sum()) <= recipe.total]
    return fitting[-1] if fitting else choices[0]


def _divided(total: int, count: int, wanted: _Wanted) -> torch.Tensor:
    """`total` in `count` random parts."""
    cuts = wanted.integers(0, total + 1, (count - 1,)).sort().values
    edges = torch.cat((torch.zeros(1, dtype=torch.int64), cuts, torch.tensor([total])))
    return edges.diff()


def _probabilities(_recipe: Probabilities, wanted: _Wanted) -> torch.Tensor:
    return wanted.cast((wanted.normal() * _PEAK).softmax(-1))


def _coins(_recipe: Coins, wanted: _Wanted) -> torch.Tensor:
    return wanted.integers(0, 2).to(torch.bool)


def _bytes(_recipe: Bytes, wanted: _Wanted) -> torch.Tensor:
    stored = stored_shape(wanted.name, wanted.shape)
    return wanted.integers(0, 256, stored).to(torch.uint8).view(wanted.dtype)


def _packed_rows(recipe: PackedRows, wanted: _Wanted) -> torch.Tensor:
    pages = wanted.shape[0]
    values = torch.randn((pages, recipe.rows * recipe.width), generator=wanted.random)
    codes = values.clamp(-_EIGHT_BIT_RANGE, _EIGHT_BIT_RANGE).to(torch.float8_e4m3fn)
    scales = torch.rand((pages, recipe.rows), generator=wanted.random) + 0.5
    packed = torch.cat((codes.view(torch.uint8), scales.view(torch.uint8)), dim=1)
    return packed.view(wanted.dtype).reshape(wanted.shape)


def _fixed(recipe: Fixed, wanted: _Wanted) -> torch.Tensor:
    return torch.full(wanted.shape, recipe.value, dtype=wanted.dtype)


def _product(sizes: list[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


_MAKERS: dict[type, Callable[..., torch.Tensor]] = {
    Normal: _normal,
    Uniform: _uniform,
    Integers: _integers,
    Distinct: _distinct,
    Offsets: _offsets,
    Probabilities: _probabilities,
    Coins: _coins,
    Bytes: _bytes,
    PackedRows: _packed_rows,
    Fixed: _fixed,
}
