"""The sizes that a choice depends on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ApplyKey:
    axes: tuple = ()
    feats: tuple = ()


class ApplyKeyFactory:
    def __init__(self, definition):
        self.definition = definition

    @classmethod
    def specialize(cls, definition):
        return cls(definition)

    def build_from_args(self, args):
        return ApplyKey(tuple(self.definition.get_axes_values_from_inputs(args).items()))
