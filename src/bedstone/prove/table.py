"""Solutions by Definition and sizes, loaded into this process and ready to be called."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bedstone.errors import BedstoneError
from bedstone.prove.choose import Choice, Policy, choose
from bedstone.prove.reference import expected_outputs
from bedstone.prove.results import Expected, ResultError
from bedstone.prove.sandbox.load import load_entry
from bedstone.prove.tensors import stored_shape, torch_dtype
from bedstone.prove.trace_set import TraceSet
from bedstone.prove.write import build_request, write_sources
from bedstone.spec.arguments import merge_arguments
from bedstone.spec.axes import bind
from bedstone.spec.definition import Definition
from bedstone.spec.solution import Solution

Entry = Callable[..., Any]


@dataclass
class TraceTable:
    """What Traces recommend on one device; Solutions run in this process, so trust them first.

    Their files are written below `folder`. `hits` and `misses` count calls by Definition; `why`
    tells what came of each Definition and sizes.
    """

    traces: TraceSet
    hardware: str
    folder: Path
    policy: Policy = "exact"
    hits: Counter[str] = field(default_factory=Counter)
    misses: Counter[str] = field(default_factory=Counter)
    why: dict[tuple[str, tuple[tuple[str, int], ...]], str] = field(default_factory=dict)
    _found: dict[Any, Entry | None] = field(default_factory=dict)

    def find(
        self, definition: str, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> Callable[[], object] | None:
        """A call of the best Solution; None where there is none or it does not load."""
        known = self.traces.definitions.get(definition)
        arguments = args
        if known is not None:
            arguments = merge_arguments((*known.inputs, *known.outputs), args, kwargs)
        entry = self._find(definition, arguments)
        (self.misses if entry is None else self.hits)[definition] += 1
        return None if entry is None else partial(entry, *arguments)

    def _find(self, name: str, arguments: tuple[object, ...]) -> Entry | None:
        known = self.traces.definitions.get(name)
        if known is None:
            self.why[name, ()] = "no such definition"
            return None
        shapes = [tuple(a.shape) if isinstance(a, torch.Tensor) else None for a in arguments]
        try:
            sizes = bind(known, shapes)
        except BedstoneError as error:
            self.why[name, ()] = str(error)
            return None
        axes = tuple((axis, sizes[axis]) for axis in known.var_axes)
        if (name, axes) not in self._found:
            self._found[name, axes] = self._load(known, sizes, axes)
        return self._found[name, axes]

    def _load(
        self, definition: Definition, sizes: Mapping[str, int], axes: tuple[tuple[str, int], ...]
    ) -> Entry | None:
        choice = self.choice(definition, dict(axes))
        key = (definition.name, axes)
        if choice.solution is None:
            self.why[key] = "; ".join(f"`{r.solution}`: {r.why}" for r in choice.others) or "none"
            return None
        try:
            entry = self._entry(definition, choice.solution, sizes)
        except Exception as error:  # noqa: BLE001  (a Solution is anybody's code)
            self.why[key] = f"`{choice.solution.name}` does not load: {error}"
            return None
        self.why[key] = f"`{choice.solution.name}`: {choice.latency_ms:.4g} ms"
        return entry

    def choice(self, definition: Definition, axes: Mapping[str, int]) -> Choice:
        """The Solution for these sizes, and why not the others."""
        solutions = self.traces.solutions.get(definition.name, [])
        traces = self.traces.traces.get(definition.name, [])
        return choose(definition, solutions, traces, axes, self.hardware, self.policy)

    def _entry(self, definition: Definition, solution: Solution, sizes: Mapping[str, int]) -> Entry:
        package = write_sources(solution, self.folder)
        loaded = load_entry(package, build_request(solution, self.folder))
        if loaded.setup is not None:
            raise ResultError("RUNTIME_ERROR", "it has a `setup`, and a plain call does not")
        if not loaded.destination_passing:
            return loaded.entry
        return value_returning(loaded.entry, expected_outputs(definition, sizes))


def value_returning(entry: Entry, outputs: Sequence[Expected]) -> Entry:
    """A destination-passing entry as one that returns its outputs, in memory made for the call."""

    def returning(*arguments: Any) -> Any:  # noqa: ANN401
        device = next(a.device for a in arguments if isinstance(a, torch.Tensor))
        made = allocate(outputs, device)
        entry(*arguments, *made)
        return made[0] if len(made) == 1 else tuple(made)

    return returning


def allocate(outputs: Sequence[Expected], device: torch.device) -> list[torch.Tensor]:
    """Memory for each output that is not written over an input."""
    return [
        torch.empty(stored_shape(o.dtype, o.shape or ()), dtype=torch_dtype(o.dtype), device=device)
        for o in outputs
        if o.target is None
    ]
