"""A CUDA kernel called by the tests' harness and held against its Definition."""

from collections.abc import Mapping

import ml_dtypes
import numpy as np
import torch

from bedstone.library.kernel import Kernel
from bedstone.prove.judge import Metrics
from bedstone.prove.lazy import Trial
from bedstone.prove.own.problems import tolerance_of
from bedstone.prove.results import Expected
from bedstone.prove.written import judge_output
from bedstone.spec.definition import Definition
from bedstone.spec.manifest import ScalarParam
from kernels.gpu_library import GpuLibrary


def judged(
    library: GpuLibrary,
    name: str,
    definition: Definition,
    trial: Trial,
    numbers: Mapping[str, int | float],
) -> dict[str, Metrics]:
    """How far off each output is of a call on a trial's inputs; `numbers` has every scalar."""
    kernel: Kernel = dict(library.kernels.named)[name]
    args = {n: _array(value) for n, value in trial.inputs.items()}
    args |= {n: _poisoned(value) for n, value in trial.expected.items() if n not in args}
    scalars = [p.name for p in kernel.params if isinstance(p.type, ScalarParam)]
    library.call(name, **args, **{scalar: numbers[scalar] for scalar in scalars})
    shapes = [value.shape for value in trial.expected.values()]
    tolerance = tolerance_of(kernel, definition, shapes)
    return {
        n: judge_output(
            Expected(n, definition.outputs[n].dtype, tuple(value.shape), None),
            trial.inputs.get(definition.in_place.get(n, "")),
            _tensor(args[n]),
            value,
            tolerance,
        )
        for n, value in trial.expected.items()
    }


def _array(tensor: torch.Tensor) -> np.ndarray:
    """A tensor as the harness takes it, in memory of its own."""
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.uint16).numpy().view(ml_dtypes.bfloat16).copy()
    return tensor.numpy().copy()


def _tensor(found: np.ndarray) -> torch.Tensor:
    if found.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(found.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(found)


def _poisoned(expected: torch.Tensor) -> np.ndarray:
    raw = np.full(expected.nelement() * expected.element_size(), 0xFF, np.uint8)
    return raw.view(_array(expected).dtype).reshape(expected.shape)
