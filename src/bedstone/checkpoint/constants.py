"""What a step graph reads of a checkpoint: constants, each made of rows of its tensors.

Most constants are a tensor as it stands. Others are some of one's rows (a convolution's taps of the
queries alone), some rows of each head (those of an up-projection that make keys) or a stack. A
constant's bytes are its rows laid end to end: a format's blocks stay whole, nothing is quantized
anew.
"""

import math
from collections.abc import Iterator

from bedstone.checkpoint.config import LatentConfig, MixtureConfig, ModelConfig, RecurrentConfig
from bedstone.checkpoint.layers import EXPERTS, TAPS, UP, layer_tensors
from bedstone.checkpoint.names import whole_tensors
from bedstone.spec.frozen import Frozen


class Window(Frozen):
    """Rows of a tensor by its canonical name, `rows` of them from `start`.

    A tensor is a matrix here, as wide as its last axis; a vector is one row.
    """

    tensor: str
    start: int
    rows: int


class Constant(Frozen):
    """A constant of a step graph: [n], [n, k], or a stack [e, n, k]."""

    name: str
    shape: tuple[int, ...]
    windows: tuple[Window, ...]


def constants(config: ModelConfig) -> dict[str, Constant]:
    """Every constant a step of the model may read, in one form or another, by name."""
    found = [_whole(name, shape) for name, shape in whole_tensors(config).items()]
    for layer in range(config.layers):
        found += layer_constants(config, layer)
    return {constant.name: constant for constant in found}


def layer_constants(config: ModelConfig, layer: int) -> Iterator[Constant]:
    """The constants of one layer."""
    for below, shape in layer_tensors(config, layer).items():
        name = f"model.layers.{layer}.{below}"
        if below == TAPS and config.recurrent is not None:
            yield from _taps(name, config.recurrent)
        elif not below.startswith(EXPERTS):
            yield _whole(name, shape)
        if below == UP and config.latent is not None:
            yield from _up(name, config.heads, config.latent)
    mixture = config.mixture
    if mixture is not None and layer in mixture.layers:
        yield from _experts(f"model.layers.{layer}.{EXPERTS}", config.hidden, mixture)


def part_name(tensor: str, part: str) -> str:
    """The name of a constant that is the `part` of the tensor `tensor`."""
    return f"{tensor.removesuffix('.weight')}.{part}.weight"


def _whole(name: str, shape: tuple[int, ...]) -> Constant:
    rows = math.prod(shape[:-1])
    return Constant(name, shape, (Window(name, 0, rows),))


def _taps(name: str, recurrent: RecurrentConfig) -> Iterator[Constant]:
    """The taps of one convolution over queries, keys and values side by side, taken apart."""
    start = 0
    widths = (recurrent.key_width, recurrent.key_width, recurrent.value_width)
    for part, rows in zip(("query", "key", "value"), widths, strict=True):
        shape = (rows, recurrent.kernel)
        yield Constant(part_name(name, part), shape, (Window(name, start, rows),))
        start += rows


def _up(name: str, heads: int, latent: LatentConfig) -> Iterator[Constant]:
    """The rows of each head that make its keys, and those that make its values."""
    pitch = latent.own + latent.value_dim
    for part, start, rows in (("key", 0, latent.own), ("value", latent.own, latent.value_dim)):
        windows = tuple(Window(name, head * pitch + start, rows) for head in range(heads))
        yield Constant(part_name(name, part), (heads, rows, latent.kv_rank), windows)


def _experts(name: str, hidden: int, mixture: MixtureConfig) -> Iterator[Constant]:
    """The experts' gates, ups and downs, a stack [experts, n, k] of each."""
    wide = mixture.intermediate
    for part, n, k in (("gate", wide, hidden), ("up", wide, hidden), ("down", hidden, wide)):
        stack = f"{name}.{part}_proj.weight"
        windows = _expert_windows(name, part, n, mixture)
        yield Constant(stack, (mixture.experts, n, k), windows)


def _expert_windows(name: str, part: str, n: int, mixture: MixtureConfig) -> tuple[Window, ...]:
    """Where the `n` rows of each expert lie, expert by expert."""
    experts = range(mixture.experts)
    if mixture.layout == "apart":
        return tuple(Window(f"{name}.{e}.{part}_proj.weight", 0, n) for e in experts)
    if mixture.layout == "stacked":
        return (Window(f"{name}.{part}_proj.weight", 0, len(experts) * n),)
    if part == "down":
        return (Window(f"{name}.down_proj", 0, len(experts) * n),)
    start = n if part == "up" else 0
    return tuple(Window(f"{name}.gate_up_proj", 2 * n * e + start, n) for e in experts)
