"""The shapes of well-known models: what a plan needs of a checkpoint, without any weights.

`shapes.json` holds fields of the config.json each model was published with, those that decide what
a step computes, in the words of Hugging Face: they are read as any checkpoint's config is.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from math import prod
from typing import Any, Protocol

from bedstone.checkpoint.config import ModelConfig, require_config
from bedstone.checkpoint.constants import Constant, constants
from bedstone.checkpoint.hf_config import parse_hf_config
from bedstone.errors import CallerError
from bedstone.spec.dtype import FORMATS, FormatName

ROUTER = ".mlp.gate.weight"
"""How the name of every router ends."""


class Shape(Protocol):
    """What a plan asks of a checkpoint, and all it asks: no weights are read."""

    @property
    def reference(self) -> str:
        """What messages call it."""
        ...

    @property
    def config(self) -> ModelConfig:
        """The model's sizes."""
        ...

    @property
    def constants(self) -> Mapping[str, Constant]:
        """Everything a step of the model may read."""
        ...

    def format(self, name: str) -> FormatName:
        """How a constant is held."""
        ...


@dataclass(frozen=True)
class ShapeCheckpoint:
    """A model's config, and the one format that its matrices would be held in.

    As in the files of such a format, what a quantized model holds as f32 are vectors (a matrix of
    one row is one), the routers of mixtures, and matrices whose rows are no whole blocks.
    """

    reference: str
    config: ModelConfig
    matrices: FormatName

    @cached_property
    def constants(self) -> Mapping[str, Constant]:
        """Everything a step of the model may read."""
        return constants(self.config)

    def format(self, name: str) -> FormatName:
        """How a constant would be held."""
        return self.held(name, self.constants[name].shape)

    def held(self, name: str, shape: tuple[int, ...]) -> FormatName:
        """How a tensor or a constant of that shape would be held."""
        held = FORMATS[self.matrices]
        *rows, width = shape
        whole = prod(rows) > 1 and width % held.block == 0 and not name.endswith(ROUTER)
        return held.name if whole or not held.quantized else "f32"


def shape_names() -> tuple[str, ...]:
    """The models whose shapes are known."""
    return tuple(_read())


def shape_checkpoint(name: str, matrices: FormatName = "bf16") -> ShapeCheckpoint:
    """The shape of a well-known model; a name that is none of `shape_names` is a `CallerError`."""
    known = _read()
    if name not in known:
        names = ", ".join(f"`{known_name}`" for known_name in known)
        raise CallerError(f"no config `{name}`: expected one of {names}")
    config = parse_hf_config(known[name], name, name)
    require_config(config, name)
    return ShapeCheckpoint(name, config, matrices)


def _read() -> dict[str, dict[str, Any]]:
    text = (files("bedstone.checkpoint") / "shapes.json").read_text(encoding="utf-8")
    read: dict[str, dict[str, Any]] = json.loads(text)
    return read
