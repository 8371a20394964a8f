"""From a checkpoint to the target that serves it: hardware set, model's record, quantization."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path, PurePath

from bedstone.checkpoint.config import ModelConfig
from bedstone.checkpoint.hf_families import FAMILIES
from bedstone.checkpoint.shapes import Shape
from bedstone.target.cpu import choose, refuses
from bedstone.target.features import read_features
from bedstone.target.hardware import HardwareSet, read_sets
from bedstone.target.models import Model, read_models
from bedstone.target.pin import parse_target
from bedstone.target.records import KERNELS
from bedstone.target.resolve import Resolution, Subject, resolve
from bedstone.target.sources import Sources, read_sources


@dataclass(frozen=True, slots=True)
class Route:
    """Where a checkpoint is served: what a compile is made of and for."""

    hardware: HardwareSet
    model: Model
    resolution: Resolution
    sources: Sources

    @property
    def quantization(self) -> str | None:
        """The quantization whose folder the target has, if it has one."""
        return self.resolution.require().quantization


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that decided a checkpoint's target; `others` says why no other hardware set was taken."""

    subject: Subject
    hardware: HardwareSet
    models: Mapping[str, Model]
    resolution: Resolution
    others: Mapping[str, str]


def explain(shape: Shape, target: str, kernels: Path = KERNELS) -> Explanation:
    """How the target of a checkpoint is found on this machine.

    A set this machine cannot run is a `TargetError`, a name that nothing has a `CallerError`; that
    no model's record serves the checkpoint is part of the answer.
    """
    wanted, pin = parse_target(target)
    sets, features = read_sets(kernels), read_features()
    hardware = choose(wanted, sets, features)
    models = read_models(hardware, kernels)
    seen = subject(shape)
    others = {
        name: refuses(each, features) or f"`{hardware.name}` is taken"
        for name, each in sets.items()
        if name != hardware.name and each.form is not None
    }
    return Explanation(seen, hardware, models, resolve(models, seen, pin), others)


def route(shape: Shape, target: str, kernels: Path = KERNELS) -> Route:
    """The target that serves a checkpoint on this machine; a `TargetError` where none does."""
    found = explain(shape, target, kernels)
    chosen = found.resolution.require()
    model = found.models[chosen.model]
    sources = read_sources(found.hardware, model, chosen.quantization, kernels)
    return Route(found.hardware, model, found.resolution, sources)


def subject(shape: Shape) -> Subject:
    """A checkpoint as resolution sees it: its last names only, for a folder above says nothing."""
    config = shape.config
    names = (config.name, PurePath(shape.reference).name)
    return Subject(
        FAMILIES[config.architecture].model_type,
        facts(config),
        _quantization(shape),
        tuple(dict.fromkeys(name for name in names if name)),
    )


def facts(config: ModelConfig) -> Mapping[str, int]:
    """The sizes a model's record may ask for, by the names of a `config.json`."""
    sizes = {
        "hidden_size": config.hidden,
        "intermediate_size": config.intermediate,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
    }
    if config.recurrent is not None:
        sizes["linear_num_value_heads"] = config.recurrent.value_heads
    return sizes


def _quantization(shape: Shape) -> str:
    """The format that holds most of the values of the matrices."""
    values: Counter[str] = Counter()
    for name, constant in shape.constants.items():
        if len(constant.shape) > 1:
            values[shape.format(name)] += prod(constant.shape)
    return max(values, key=lambda held: (values[held], held))
