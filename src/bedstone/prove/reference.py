"""A Definition's reference as a function: loaded once, run on copies, its results checked.

The reference is the Definition author's code and runs in this process; a Solution's never does.
"""

import inspect
import linecache
import math
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from bedstone.errors import DefinitionError
from bedstone.prove.results import Expected, ResultError, as_tensor, named_results
from bedstone.prove.tensors import Made
from bedstone.spec.axes import shape_of
from bedstone.spec.definition import Definition

_TYPING = ("Any", "Dict", "List", "Optional", "Tuple", "Union")
_TAKEN_FOR_GRANTED = {
    "torch": torch,
    "math": math,
    **{name: getattr(typing, name) for name in _TYPING},
}
"""What FlashInfer's dumps use without importing it."""


def expected_outputs(definition: Definition, values: Mapping[str, int]) -> list[Expected]:
    """Name, element type, shape and place of every output under these sizes, in order."""
    return [
        Expected(name, spec.dtype, shape_of(spec, values), definition.in_place.get(name))
        for name, spec in definition.outputs.items()
    ]


class Reference:
    """The reference of a Definition; a draft, or one that does not load, is a `DefinitionError`."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        if definition.entry is None:
            raise DefinitionError(f"`{definition.name}` has a draft reference: nothing to run")
        self._scope = _loaded(definition)
        self._entry: Callable[..., Any] = self._scope[definition.entry]
        self._keywords = _keywords(self._entry, definition)

    def run(
        self, values: Mapping[str, Made | None], sizes: Mapping[str, int], seed: int
    ) -> dict[str, torch.Tensor]:
        """The outputs for these inputs, which are not changed.

        Args:
            values: Every input by name, None where one is left out.
            sizes: Every axis.
            seed: Of PyTorch's own generator, which a reference may draw from.

        Returns:
            Each output as a tensor of the declared type, a scalar as one element.

        Raises:
            DefinitionError: the reference failed, or gave what its Definition does not declare.
        """
        copies = {n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in values.items()}
        with _seeded(seed), torch.no_grad():
            try:
                result = self._call(copies)
            except Exception as error:  # the reference is anybody's code
                raise DefinitionError(
                    f"the reference of `{self.definition.name}` failed: "
                    f"{type(error).__name__}: {error}"
                ) from error
        return self._outputs(result, copies, sizes)

    def _call(self, values: Mapping[str, Made | None]) -> Any:  # noqa: ANN401
        if self._keywords is None:
            return self._entry(*values.values())
        # an absent input leaves its parameter's own default
        given = {n: v for n, v in values.items() if v is not None or self._keywords[n]}
        return self._entry(**given)

    def _outputs(
        self, result: object, copies: Mapping[str, Any], sizes: Mapping[str, int]
    ) -> dict[str, torch.Tensor]:
        outputs = expected_outputs(self.definition, sizes)
        try:
            named = named_results(result, outputs)
            return {
                each.name: as_tensor(named.get(each.name, copies.get(each.target or "")), each)
                .detach()
                .contiguous()
                for each in outputs
            }
        except ResultError as error:
            raise DefinitionError(
                f"the reference of `{self.definition.name}` gives what it does not declare: {error}"
            ) from error

    def custom_inputs(self, axes_and_scalars: Mapping[str, Any], seed: int) -> dict[str, Any]:
        """The inputs that the Definition's own function makes.

        Args:
            axes_and_scalars: Every axis and the scalars the Workload states.
            seed: Of PyTorch's own generator.

        Returns:
            What it gives, by input.

        Raises:
            DefinitionError: there is no such function, or it gives no inputs.
        """
        name = self.definition.custom_inputs
        maker = self._scope.get(name or "")
        if not callable(maker):
            raise DefinitionError(f"`{self.definition.name}` has no function `{name}`")
        with _seeded(seed):
            made = maker(dict(axes_and_scalars), torch.device("cpu"))
        if not isinstance(made, dict) or not made.keys() <= self.definition.inputs.keys():
            raise DefinitionError(f"`{name}` of `{self.definition.name}` gives other than inputs")
        return made


def _loaded(definition: Definition) -> dict[str, Any]:
    """The names the reference's text defines."""
    where = f"<reference of {definition.name}>"
    text = definition.reference
    # so that tracebacks and `inspect.getsource` find its lines
    linecache.cache[where] = (len(text), None, text.splitlines(keepends=True), where)
    scope: dict[str, Any] = {"__name__": "reference", **_TAKEN_FOR_GRANTED}
    try:
        exec(compile(text, where, "exec"), scope)  # noqa: S102  (running it is the point)
    except Exception as error:  # the reference is anybody's code
        raise DefinitionError(
            f"the reference of `{definition.name}` does not load: {type(error).__name__}: {error}"
        ) from error
    return scope


def _keywords(entry: Callable[..., Any], definition: Definition) -> dict[str, bool] | None:
    """For each input whether its parameter must be given; None where names do not agree."""
    parameters = inspect.signature(entry).parameters
    if not definition.inputs.keys() <= parameters.keys():
        return None
    return {n: parameters[n].default is inspect.Parameter.empty for n in definition.inputs}


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """PyTorch's generator seeded, and afterwards as it was; those of GPUs would open them."""
    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(seed)
        yield
