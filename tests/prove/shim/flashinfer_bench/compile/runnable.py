"""A loaded entry and both ways to call it."""

from dataclasses import dataclass, field

import torch

from bedstone.prove.reference import expected_outputs
from bedstone.prove.results import as_tensor, named_results
from bedstone.prove.table import allocate, value_returning
from bedstone.spec.arguments import merge_arguments


@dataclass
class RunnableMetadata:
    build_type: str
    definition_name: str
    solution_name: str
    destination_passing_style: bool = True
    definition: object = None
    misc: dict = field(default_factory=dict)


class Runnable:
    def __init__(self, callable, metadata, cleaner=None):  # noqa: A002
        self.entry, self.metadata, self.cleaner = callable, metadata, cleaner

    def __call__(self, *args):
        result = self.entry(*args)
        if isinstance(result, tuple) and len(result) < 2:
            return result[0] if result else None
        return result

    def cleanup(self):
        cleaner, self.cleaner = self.cleaner, None
        if cleaner is not None:
            cleaner()

    def outputs(self, args):
        inputs = args[: len(self.metadata.definition.own.inputs)]
        sizes = self.metadata.definition.get_axes_values_from_inputs(inputs)
        own = self.metadata.definition.own
        return expected_outputs(own, own.const_axes | sizes)

    def _allocate_output_tensors(self, *args):
        return allocate(self.outputs(args), torch.device("cpu"))

    def call_destination_passing(self, *args):
        if self.metadata.destination_passing_style:
            self.entry(*args)
            return
        count = len(self.metadata.definition.own.inputs)
        outputs = self.outputs(args)
        named = named_results(self.entry(*args[:count]), outputs)
        for expected, target in zip(outputs, args[count:], strict=True):
            target.copy_(as_tensor(named[expected.name], expected))

    def call_value_returning(self, *args):
        if not self.metadata.destination_passing_style:
            return self(*args)
        return value_returning(self.entry, self.outputs(args))(*args)

    def call_kwargs(self, **kwargs):
        own = self.metadata.definition.own
        return self(*merge_arguments((*own.inputs, *own.outputs), (), kwargs))
