"""An open checkpoint: one config and named tensors, whichever files they came in.

Opening reads headers only. Every tensor the config calls for has been found in its shape by then;
what no part of the model uses is listed in `unused`. Tokenizer and chat template are read when
first asked for.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bedstone.checkpoint.config import ModelConfig
from bedstone.checkpoint.constants import Constant, constants
from bedstone.checkpoint.dequant import dequantize
from bedstone.checkpoint.gguf import GgufFile
from bedstone.checkpoint.names import EMBEDDING, HEAD, INERT_SUFFIXES, expected_tensors
from bedstone.checkpoint.tensors import Maps, TensorInfo, WeightFile
from bedstone.errors import WeightError
from bedstone.spec.dtype import FormatName
from bedstone.spec.frozen import Frozen

if TYPE_CHECKING:
    from bedstone.checkpoint.chat import ChatTemplate
    from bedstone.checkpoint.tokenizer import Tokenizer

SHOWN_FAULTS = 50
"""A message lists that many faults and counts the rest."""

SHOWN_UNUSED = 3
"""A note names that many tensors nothing reads and counts the rest."""

SAMPLE_BYTES = 64
"""Bytes of each tensor that go into a checkpoint's identity."""


class Weights(Frozen):
    """The tensors of all files of a checkpoint, by their own names.

    `foreign` are those in an element type not read here. `own_name` turns a canonical name into
    the files' name, `inert` are tensors that something else than the graph has used.
    """

    files: tuple[WeightFile, ...]
    tensors: Mapping[str, TensorInfo]
    foreign: Mapping[str, str]
    own_name: Callable[[str], str]
    inert: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint as `reference` names it, found at `path`.

    `prompting` is where its tokenizer and chat template come from: a directory or a GGUF header.
    """

    reference: str
    path: Path
    config: ModelConfig
    weights: Weights
    notes: tuple[str, ...]
    prompting: Path | GgufFile = field(repr=False)
    maps: Maps = field(default_factory=Maps, repr=False)

    @property
    def tensors(self) -> Mapping[str, TensorInfo]:
        """Every readable tensor by its own name in the files."""
        return self.weights.tensors

    def own_name(self, canonical: str) -> str:
        """The own name of the tensor that serves as `canonical`; a tied head is the embedding."""
        tied = canonical == HEAD and self.config.tie_embeddings
        return self.weights.own_name(EMBEDDING if tied else canonical)

    def tensor(self, canonical: str) -> TensorInfo:
        """The tensor that serves as `canonical`, a Hugging Face name.

        Raises `WeightError` where the checkpoint has none.
        """
        own = self.own_name(canonical)
        if own not in self.tensors:
            raise WeightError(f"`{self.reference}` has no tensor `{own}`")
        return self.tensors[own]

    def raw(self, info: TensorInfo) -> NDArray[np.uint8]:
        """The bytes of a tensor [nbytes], a read-only view of the mapped file."""
        return self.maps.raw(info)

    def file(self, info: TensorInfo) -> tuple[Path, int]:
        """The file that holds a tensor's bytes, and the byte of it they begin at."""
        return info.path, info.offset

    @cached_property
    def constants(self) -> Mapping[str, Constant]:
        """Everything a step of the model may read."""
        return constants(self.config)

    def pieces(self, constant: Constant) -> tuple[TensorInfo, ...]:
        """Where the rows of a constant lie, a matrix [rows, width] for each of its windows.

        Raises `WeightError` where they are held in more than one format.
        """
        found = tuple(
            _window(self.tensor(window.tensor), window.start, window.rows)
            for window in constant.windows
        )
        formats = sorted({piece.format for piece in found})
        if len(formats) > 1:
            names = ", ".join(f"`{piece.name}`" for piece in found[:SHOWN_FAULTS])
            raise WeightError(f"{names} of `{self.reference}` are held as {', '.join(formats)}")
        return found

    def format(self, name: str) -> FormatName:
        """How the checkpoint holds a constant."""
        return self.pieces(self.constants[name])[0].format

    def values(self, name: str) -> NDArray[np.float32]:
        """The values of a constant, or of a tensor by its canonical name, as float32: a copy."""
        constant = self.constants.get(name)
        if constant is None:
            info = self.tensor(name)
            return dequantize(self.raw(info), info.format, info.shape)
        pieces = self.pieces(constant)
        rows = [dequantize(self.raw(piece), piece.format, piece.shape) for piece in pieces]
        return np.concatenate(rows).reshape(constant.shape)

    def close(self) -> None:
        """Let the files go."""
        self.maps.close()

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """The model's vocabulary."""
        from bedstone.checkpoint.prompting import read_tokenizer  # noqa: PLC0415 - slow to load

        return read_tokenizer(self.prompting, self.config)

    @cached_property
    def chat_template(self) -> "ChatTemplate | None":
        """How messages become a prompt; None for a model that was not trained to chat."""
        from bedstone.checkpoint.prompting import read_template  # noqa: PLC0415 - as above

        return read_template(self.prompting, self.tokenizer)

    @cached_property
    def unused(self) -> tuple[str, ...]:
        """Own names of tensors that no part of the model reads, sorted."""
        used = {self.weights.own_name(name) for name in expected_tensors(self.config)}
        used |= self.weights.inert
        stored = {*self.tensors, *self.weights.foreign}
        return tuple(sorted(n for n in stored - used if not n.endswith(INERT_SUFFIXES)))

    @cached_property
    def identity(self) -> str:
        """Hex sha256 over each file's size and whole header, and a sample of each tensor.

        Cheap (no weights are read through) and independent of place and time. The config counts,
        its name does not, nor do those of files while their order is the same. Two checkpoints of
        one shape differ as soon as one tensor differs in its sample, the first 64 bytes: that tells
        fine-tunes apart, it does not prove a file intact.
        """
        digest = hashlib.sha256(repr(replace(self.config, name="")).encode())
        numbers = {file.path: number for number, file in enumerate(self.weights.files)}
        for file in self.weights.files:
            header = TensorInfo("header", "f32", (), file.path, 0, file.data_start)
            digest.update(f"\n{file.size} {file.data_start}\n".encode())
            digest.update(self.raw(header).data)
        for name, info in sorted(self.tensors.items()):
            digest.update(f"\n{name} {numbers[info.path]}\n".encode())
            digest.update(self.raw(info)[:SAMPLE_BYTES].data)
        return digest.hexdigest()


def _window(info: TensorInfo, start: int, rows: int) -> TensorInfo:
    """Rows of a tensor seen as a matrix; a vector is one row."""
    row_bytes, width = info.nbytes // math.prod(info.shape[:-1]), info.shape[-1]
    offset = info.offset + start * row_bytes
    return replace(info, shape=(rows, width), offset=offset, nbytes=rows * row_bytes)


def check_weights(config: ModelConfig, weights: Weights) -> list[str]:
    """Say which tensors the config calls for are missing, of another shape or not readable.

    A matrix of one row may be held as a vector.
    """
    faults = []
    for canonical, shape in expected_tensors(config).items():
        own = weights.own_name(canonical)
        info = weights.tensors.get(own)
        if own in weights.foreign:
            faults.append(_foreign_fault(own, weights))
        elif info is None:
            faults.append(f"`{own}` missing, expected shape {list(shape)}")
        elif shape not in (info.shape, (1, *info.shape)):
            faults.append(f"`{own}` has shape {list(info.shape)}, expected {list(shape)}")
    return faults


def require_weights(config: ModelConfig, weights: Weights, where: str) -> None:
    """Refuse a checkpoint that lacks part of the model its config describes.

    Raises `WeightError` that names the tensors.
    """
    faults = check_weights(config, weights)
    if not faults:
        return
    more = len(faults) - SHOWN_FAULTS
    shown = faults[:SHOWN_FAULTS] + ([f"and {more} more"] if more > 0 else [])
    raise WeightError(f"`{where}` does not hold the model of its config: " + "; ".join(shown))


def accounted(checkpoint: Checkpoint) -> Checkpoint:
    """With a note of what its files hold and no part of the model reads."""
    unused = checkpoint.unused
    if not unused:
        return checkpoint
    named = ", ".join(f"`{name}`" for name in unused[:SHOWN_UNUSED])
    more = len(unused) - SHOWN_UNUSED
    named += f" and {more} more" if more > 0 else ""
    return replace(checkpoint, notes=(*checkpoint.notes, f"no part of the model reads {named}"))


def _foreign_fault(own: str, weights: Weights) -> str:
    dtype = weights.foreign[own]
    scales = [own + suffix for suffix in ("_scale_inv", "_scale")]
    stored = {*weights.tensors, *weights.foreign}
    if dtype.startswith("F8_E") and stored.isdisjoint(scales):
        return f"`{own}` is {dtype} and its scale `{scales[0]}` is missing"
    return f"unsupported dtype {dtype} in tensor `{own}`"
