"""The step graph of a model: `ModelConfig` in, `StepGraph` out, a file per family."""

from bedstone.models.families import FAMILIES, step_graph

__all__ = ["FAMILIES", "step_graph"]
