"""A checkpoint of a config alone: its weights are drawn, in memory, and written nowhere.

For measuring, where what a model says does not matter. Values are about N(0, 0.02), from a seeded
generator. One block of each format is drawn and laid end to end; each tensor begins in it at
another place, so that no two hold the same bytes, and none holds zeros. Blocks of a quantized
format stay whole: their codes are drawn evenly, their scales make the values as wide.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from bedstone.checkpoint.checkpoint import Checkpoint, Weights
from bedstone.checkpoint.config import ModelConfig
from bedstone.checkpoint.names import expected_tensors
from bedstone.checkpoint.shapes import ShapeCheckpoint, shape_checkpoint
from bedstone.checkpoint.tensors import Maps, TensorInfo
from bedstone.errors import CallerError
from bedstone.spec.dtype import FORMATS, Format, FormatName

if TYPE_CHECKING:
    from bedstone.checkpoint.tokenizer import Tokenizer

PREFIX = "random:"
"""How a reference to such a checkpoint begins: `random:CONFIG/FORMAT`."""

SPREAD = 0.02
BLOCK_BYTES = 64 << 20
_SEED = 1
_STRIDE = 4099
"""Blocks from where one tensor begins to where the next does: a prime."""

_NUMBERS: Mapping[FormatName, type[np.generic]] = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
}
_SCALES: Mapping[FormatName, Mapping[int, float]] = {
    "q8_0": {0: SPREAD / 73.9},
    "q4_0": {0: SPREAD / 4.61},
    "q4_1": {0: SPREAD / 4.61, 2: -7.5 * SPREAD / 4.61},
    "q4_k": {0: SPREAD / 256, 2: 7.5 * SPREAD / 256},
    "q6_k": {208: SPREAD / 1367},
}
"""Where a block holds its f16 scales, and what makes evenly drawn codes `SPREAD` wide."""


def draw(form: Format, nbytes: int, seed: int = _SEED) -> NDArray[np.uint8]:
    """Whole blocks of a format [n], at most `nbytes` bytes and one block at least."""
    generator = np.random.default_rng(seed)
    count = max(1, nbytes // form.block_bytes)
    if not form.quantized:
        values = generator.standard_normal(count, np.float32) * np.float32(SPREAD)
        return values.astype(_NUMBERS[form.name]).view(np.uint8)
    blocks = generator.integers(0, 256, (count, form.block_bytes), np.uint8)
    for at, scale in _SCALES[form.name].items():
        blocks[:, at : at + 2] = np.array([scale], np.float16).view(np.uint8)
    return blocks.reshape(-1)


@dataclass
class DrawnMaps(Maps):
    """Bytes of tensors, drawn when the first of a format is asked for.

    `longest` is the bytes of the largest tensor of each format.
    """

    longest: Mapping[FormatName, int]
    blocks: dict[FormatName, NDArray[np.uint8]] = field(default_factory=dict)

    @classmethod
    def of(cls, tensors: Iterable[TensorInfo]) -> "DrawnMaps":
        """Those that hold each of `tensors`."""
        longest: dict[FormatName, int] = {}
        for info in tensors:
            longest[info.format] = max(longest.get(info.format, 0), info.nbytes)
        return cls(longest)

    def draw(self) -> None:
        """Draw all formats now rather than when they are asked for."""
        for name in self.longest:
            self._block(name)

    def raw(self, info: TensorInfo) -> NDArray[np.uint8]:
        """The tensor's bytes [nbytes], a view that cannot be written."""
        laid = self._block(info.format)
        form = FORMATS[info.format]
        period = max(form.block_bytes, laid.size - self.longest[info.format])
        start = info.offset * form.block_bytes % period
        return laid[start : start + info.nbytes]

    def _block(self, name: FormatName) -> NDArray[np.uint8]:
        """Drawn blocks, end to end, as many as the longest tensor has from any place on."""
        if name in self.blocks:
            return self.blocks[name]
        longest = self.longest[name]
        drawn = draw(FORMATS[name], min(BLOCK_BYTES, longest))
        laid = np.resize(drawn, longest + drawn.size)
        laid.setflags(write=False)
        self.blocks[name] = laid
        return laid

    def close(self) -> None:
        """Let the memory go."""
        self.blocks.clear()


@dataclass(frozen=True, slots=True)
class DrawnTensors:
    """Matrices of bf16 that are drawn, and belong to no model."""

    tensors: Mapping[str, TensorInfo]
    maps: DrawnMaps

    @classmethod
    def of(cls, **shapes: tuple[int, ...]) -> "DrawnTensors":
        """Matrices of these names and shapes."""
        tensors = {
            name: _info(name, FORMATS["bf16"], shape, at)
            for at, (name, shape) in enumerate(shapes.items())
        }
        return cls(tensors, DrawnMaps.of(tensors.values()))

    def raw(self, info: TensorInfo) -> NDArray[np.uint8]:
        """The tensor's bytes [nbytes]."""
        return self.maps.raw(info)

    def file(self, _info: TensorInfo) -> None:
        """No file holds them."""


@dataclass(frozen=True)
class DrawnCheckpoint(Checkpoint):
    """A checkpoint whose weights are drawn when they are read."""

    @property
    def drawn(self) -> DrawnMaps:
        """What holds its bytes."""
        return cast("DrawnMaps", self.maps)

    def file(self, info: TensorInfo) -> None:  # type: ignore[override]
        """No file holds them."""

    @cached_property
    def identity(self) -> str:
        """Hex sha256 of what is drawn: the sizes, the formats and the seed; nothing is drawn."""
        digest = hashlib.sha256(repr((replace(self.config, name=""), _SEED, SPREAD)).encode())
        for name, info in sorted(self.tensors.items()):
            digest.update(f"\n{name} {info.format} {info.shape} {info.offset}\n".encode())
        return digest.hexdigest()

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """One of a single letter: no text is asked of such a model."""
        from tokenizers import Tokenizer as Backend  # noqa: PLC0415 - slow to load
        from tokenizers.decoders import ByteLevel  # noqa: PLC0415 - as above
        from tokenizers.models import BPE  # noqa: PLC0415 - as above

        from bedstone.checkpoint.tokenizer import Tokenizer  # noqa: PLC0415 - as above

        backend = Backend(BPE({"a": 0}, []))
        backend.decoder = ByteLevel()
        return Tokenizer(backend, None, ())

    @cached_property
    def chat_template(self) -> None:
        """It was not trained to chat."""


def drawn_checkpoint(name: str, matrices: FormatName = "bf16") -> DrawnCheckpoint:
    """A checkpoint of a known config; a name that is none is a `CallerError`."""
    return drawn_weights(shape_checkpoint(name, matrices))


def drawn_weights(shape: ShapeCheckpoint) -> DrawnCheckpoint:
    """The checkpoint of a shape."""
    tensors = _tensors(shape.config, shape)
    reference = drawn_reference(shape.reference, shape.matrices)
    weights = Weights((), tensors, {}, lambda canonical: canonical)
    path, maps = Path(reference), DrawnMaps.of(tensors.values())
    return DrawnCheckpoint(reference, path, shape.config, weights, (), path, maps)


def drawn_reference(name: str, matrices: FormatName) -> str:
    """What a checkpoint of a config is called."""
    return f"{PREFIX}{name}/{matrices}"


def open_drawn(reference: str) -> DrawnCheckpoint:
    """The checkpoint that a reference `random:CONFIG/FORMAT` names; a `CallerError` if none."""
    name, _, matrices = reference.removeprefix(PREFIX).partition("/")
    held = next((each for each in FORMATS if each == matrices), None)
    if not reference.startswith(PREFIX) or held is None:
        raise CallerError(f"checkpoint `{reference}`: expected `{PREFIX}CONFIG/FORMAT`")
    return drawn_checkpoint(name, held)


def _tensors(config: ModelConfig, shape: ShapeCheckpoint) -> dict[str, TensorInfo]:
    return {
        name: _info(name, FORMATS[shape.held(name, size)], size, at)
        for at, (name, size) in enumerate(expected_tensors(config).items())
    }


def _info(name: str, held: Format, shape: tuple[int, ...], at: int) -> TensorInfo:
    *rows, width = shape
    nbytes = prod(rows) * held.row_bytes(width)
    return TensorInfo(name, held.name, shape, Path(PREFIX), at * _STRIDE, nbytes)
