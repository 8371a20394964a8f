"""Every input of a Workload, trial by trial, and whether it satisfies the constraints."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal, cast

import torch
from safetensors import SafetensorError, safe_open

from bedstone.errors import DefinitionError
from bedstone.prove.inputs.make import make, seed_of, with_other_signs
from bedstone.prove.inputs.recipe import Fixed, Normal, Recipe
from bedstone.prove.inputs.roles import Asked, recipe_for
from bedstone.prove.reference import Reference
from bedstone.prove.tensors import Made, stored_shape, torch_dtype
from bedstone.spec import formula
from bedstone.spec.axes import Shape, axis_values, shape_of
from bedstone.spec.definition import Definition, TensorSpec
from bedstone.spec.element import ELEMENTS
from bedstone.spec.identity import definition_identity
from bedstone.spec.workload import Custom, Random, Scalar, Stored, Workload

Values = dict[str, Made | None]
_LARGE = 1 << 20
Number = bool | int | float


@dataclass(frozen=True, slots=True)
class Contents:
    """A tensor as constraints see it."""

    tensor: torch.Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return tuple(self.tensor.shape)

    def at(self, index: tuple[int, ...]) -> int | float | bool:
        """One element."""
        value: int | float | bool = self.tensor[index].item()
        return value

    def extreme(self, which: Literal["min", "max"]) -> int | float | bool:
        """The least or greatest element."""
        value: int | float | bool = getattr(self.tensor, which)().item()
        return value


class Inputs:
    """The inputs of one Workload of a Definition; the same trial always has the same values.

    Args:
        definition: What they are inputs of.
        workload: Sizes and sources.
        root: Where stored values lie.
        stand_in: Make random values where a stored file is not there.
    """

    def __init__(
        self,
        definition: Definition,
        workload: Workload,
        root: Path | None = None,
        *,
        stand_in: bool = False,
    ) -> None:
        self.definition = definition
        self.workload = workload
        self.values = axis_values(definition, workload.axes)
        self._root = root
        self._stand_in = stand_in
        self._identity = definition_identity(definition)
        self._stored: dict[str, torch.Tensor] = {}
        self._bases: dict[str, torch.Tensor] = {}
        _require_known(definition, workload)

    def trial(self, seed: int, number: int) -> Values:
        """The values of one trial by input; None for an optional input that is left out."""
        values: Values = {}
        custom = self._custom(seed_of(self._identity, self.workload.uuid, seed, number))
        for name, spec in self.definition.inputs.items():
            # a constant input, such as weights, keeps its values from trial to trial
            turn = 0 if spec.constant else number
            one = seed_of(self._identity, self.workload.uuid, seed, turn, name)
            values[name] = custom[name] if name in custom else self._one(name, spec, one, values)
        self._require_constraints(values)
        return values

    def _one(self, name: str, spec: TensorSpec, seed: int, others: Values) -> Made | None:
        match self.workload.inputs.get(name):
            case Scalar(value):
                return self._scalar(name, spec, value)
            case Stored(path, key):
                stored = self._load(name, spec, path, key)
                return self._random(name, spec, seed, others) if stored is None else stored
            case None if spec.optional:
                return None
            case Random() | Custom() | None:
                return self._random(name, spec, seed, others)

    def _random(self, name: str, spec: TensorSpec, seed: int, others: Values) -> Made:
        recipe = recipe_for(Asked(self.definition, name, spec, self.values))
        shape = shape_of(spec, self.values)
        if shape is not None and _is_large(recipe, shape):
            if name not in self._bases:
                self._bases[name] = cast(
                    "torch.Tensor",
                    make(recipe, spec.dtype, shape, seed_of(self._identity, name), {}),
                )
            return with_other_signs(self._bases[name], seed)
        known = {n: value for n, value in others.items() if value is not None}
        if shape is None and isinstance(recipe, Fixed):
            return recipe.value
        return make(recipe, spec.dtype, shape, seed, known)

    def _scalar(self, name: str, spec: TensorSpec, value: Number) -> Made:
        kind = ELEMENTS[spec.dtype].kind
        fits = {"float": (int, float), "int": (int,), "bool": (bool,)}.get(kind, ())
        if not isinstance(value, fits) or isinstance(value, bool) != (kind == "bool"):
            raise DefinitionError(
                f"workload `{self.workload.uuid}`: expected a `{spec.dtype}` for input `{name}`, "
                f"found {value!r}"
            )
        if spec.shape is None:
            return value
        if spec.shape == ():
            return torch.tensor(value, dtype=torch_dtype(spec.dtype))
        raise DefinitionError(
            f"workload `{self.workload.uuid}` gives a number for input `{name}`, "
            f"expected a tensor of {len(spec.shape)} axes"
        )

    def _load(self, name: str, spec: TensorSpec, path: str, key: str) -> Made | None:
        """The stored tensor, read once; None where it is not there and may be replaced."""
        if name not in self._stored:
            place = require_inside(self._root, path)
            if place is None or not place.is_file():
                if self._stand_in:
                    return None
                raise DefinitionError(
                    f"workload `{self.workload.uuid}`: `{path}` of input `{name}` is not there"
                )
            self._stored[name] = _read(place, key)
        return self._fitting(name, spec, self._stored[name])

    def _fitting(self, name: str, spec: TensorSpec, tensor: torch.Tensor) -> Made:
        shape = shape_of(spec, self.values)
        if shape is None and tensor.numel() == 1:
            number: bool | int | float = tensor.item()
            return number
        expected = None if shape is None else stored_shape(spec.dtype, shape)
        if tuple(tensor.shape) != expected or tensor.dtype != torch_dtype(spec.dtype):
            raise DefinitionError(
                f"workload `{self.workload.uuid}`: expected `{spec.dtype}` {expected} for input "
                f"`{name}`, found `{tensor.dtype}` {tuple(tensor.shape)}"
            )
        return tensor

    def _custom(self, seed: int) -> Mapping[str, Any]:
        """What the Definition's own function makes, where the Workload asks or says nothing."""
        wanted = _left_to_function(self.definition, self.workload)
        if not wanted:
            return {}
        scalars = {
            n: item.value for n, item in self.workload.inputs.items() if isinstance(item, Scalar)
        }
        made = Reference(self.definition).custom_inputs({**self.values, **scalars}, seed)
        return {name: value for name, value in made.items() if name in wanted}

    def _require_constraints(self, values: Values) -> None:
        scope: dict[str, Any] = {}
        for name, value in values.items():
            if value is not None:
                scope[name] = Contents(value) if isinstance(value, torch.Tensor) else value
        scope |= self.values
        for text, holds in formula.decided(self.definition.constraints, scope):
            if holds is False:
                raise DefinitionError(
                    f"workload `{self.workload.uuid}` breaks a constraint of "
                    f"`{self.definition.name}`: `{text}`"
                )


def _require_known(definition: Definition, workload: Workload) -> None:
    for name in workload.inputs:
        if name not in definition.inputs:
            raise DefinitionError(
                f"workload `{workload.uuid}` has input `{name}`, which `{definition.name}` does not"
            )


def _left_to_function(definition: Definition, workload: Workload) -> set[str]:
    """The inputs that a function of the Definition may make.

    All where the Workload names it; else those that the Workload says nothing of.
    """
    stated = workload.inputs
    if any(isinstance(item, Custom) for item in stated.values()):
        return set(definition.inputs)
    if definition.custom_inputs is None:
        return set()
    return {n for n, spec in definition.inputs.items() if n not in stated and not spec.optional}


def _is_large(recipe: Recipe, shape: Shape) -> bool:
    """Whether values would take long to make anew for each call, and need not be."""
    symmetric = isinstance(recipe, Normal) and recipe.mean == 0
    return symmetric and prod(shape) >= _LARGE


def require_inside(root: Path | None, path: str) -> Path | None:
    """The file of a relative path below `root`.

    Args:
        root: The data set's folder; None where there is none.
        path: As a Workload gives it, untrusted.

    Returns:
        The path, or None without a root.

    Raises:
        DefinitionError: the path leaves the root.
    """
    if root is None:
        return None
    place = (root / path).resolve()
    if not place.is_relative_to(root.resolve()):
        raise DefinitionError(f"`{path}` leaves the data set's folder")
    return place


def _read(place: Path, key: str) -> torch.Tensor:
    try:
        with safe_open(place, framework="pt") as file:
            tensor: torch.Tensor = file.get_tensor(key)
            return tensor
    except (SafetensorError, OSError) as error:
        raise DefinitionError(f"`{key}` of `{place}` cannot be read: {error}") from error
