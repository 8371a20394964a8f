"""What a kernel must compute: axes, tensors and a reference, in FlashInfer-Bench's words."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bedstone.spec.fields import Extra


@dataclass(frozen=True, slots=True)
class ConstAxis:
    """A size fixed by the Definition."""

    value: int
    description: str | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VarAxis:
    """A size each Workload states."""

    description: str | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExprAxis:
    """A size computed from other axes: integer arithmetic over their names."""

    expression: str
    description: str | None = None
    extra: Extra = field(default_factory=dict)


Axis = ConstAxis | VarAxis | ExprAxis


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor, a 0-D tensor (`shape` empty) or a scalar (`shape` None).

    An entry of `shape` is an axis name or a literal size such as `1`. `optional` may be left out
    of a call; `param` names the argument an output is written to; `constant` keeps its values
    from call to call of one Workload, as weights do. `float4_e2m1` states its shape in values, two
    to a byte along the last axis.
    """

    shape: tuple[str, ...] | None
    dtype: str
    description: str | None = None
    optional: bool = False
    param: str | None = None
    constant: bool = False
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Definition:
    """The mathematics of an operation.

    `inputs` and `outputs` are in the order of the call. `entry` is the function of `reference`
    that computes them, None where the reference is a draft: it can be listed, never evaluated.
    `custom_inputs` names a function of `reference` that makes inputs; `init` is the source of one.
    """

    name: str
    op_type: str | None
    axes: Mapping[str, Axis]
    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]
    reference: str
    entry: str | None = "run"
    tags: tuple[str, ...] = ()
    description: str | None = None
    constraints: tuple[str, ...] = ()
    custom_inputs: str | None = None
    init: str | None = None
    extra: Extra = field(default_factory=dict)

    @property
    def const_axes(self) -> dict[str, int]:
        """Every fixed size."""
        return {n: a.value for n, a in self.axes.items() if isinstance(a, ConstAxis)}

    @property
    def var_axes(self) -> tuple[str, ...]:
        """The names a Workload must give a size."""
        return tuple(name for name, axis in self.axes.items() if isinstance(axis, VarAxis))

    @property
    def in_place(self) -> dict[str, str]:
        """Each output that is written over an input, and that input."""
        targets = {name: spec.param or name for name, spec in self.outputs.items()}
        return {name: target for name, target in targets.items() if target in self.inputs}
