"""The step graph of a model: `ModelConfig` in, `StepGraph` out, a file per family."""

from bedstone.models.families import FAMILIES, constants, step_graph

__all__ = ["FAMILIES", "constants", "step_graph"]
