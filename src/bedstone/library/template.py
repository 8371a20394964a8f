"""What an op class computes, but for its constants: a Definition once they are given.

A template's text names constants as `$name`: in its own name, in the reference, in constraints.
Sizes among them become const axes, so that shapes can speak of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Template as Text

from bedstone.errors import DefinitionError
from bedstone.spec.definition import Axis, ConstAxis, Definition, ExprAxis, TensorSpec, VarAxis

Constant = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Template:
    """A Definition but for its constants.

    `sizes` are the constants that are axes, `options` the others; `computed` are axes made of
    them. An entry of a shape that is neither is an axis each Workload states.
    """

    name: str
    op_type: str
    description: str
    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]
    reference: str
    sizes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    computed: Mapping[str, str] = field(default_factory=dict)
    constraints: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def at(self, **constants: Constant) -> Definition:
        """The Definition at these constants, which its name tells too.

        A `DefinitionError` names a constant that is missing, unknown, or no size where one is
        wanted.
        """
        self._require(constants)
        texts = {name: _spelled(value) for name, value in constants.items()}
        return Definition(
            name=Text(self.name).substitute(texts),
            op_type=self.op_type,
            axes=self._axes(constants),
            inputs=self.inputs,
            outputs=self.outputs,
            reference=Text(self.reference).substitute(
                {name: repr(value) for name, value in constants.items()}
            ),
            tags=self.tags,
            description=self.description,
            constraints=tuple(Text(text).substitute(texts) for text in self.constraints),
        )

    def _require(self, constants: Mapping[str, Constant]) -> None:
        wanted = {*self.sizes, *self.options}
        if constants.keys() != wanted:
            missing, extra = wanted - constants.keys(), constants.keys() - wanted
            what = f"misses `{min(missing)}`" if missing else f"has no constant `{min(extra)}`"
            raise DefinitionError(f"the template `{self.name}` {what}")
        for name in self.sizes:
            value = constants[name]
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise DefinitionError(
                    f"the template `{self.name}`: expected a size for `{name}`, found {value!r}"
                )

    def _axes(self, constants: Mapping[str, Constant]) -> dict[str, Axis]:
        axes: dict[str, Axis] = {name: ExprAxis(text) for name, text in self.computed.items()}
        axes |= {name: ConstAxis(int(constants[name])) for name in self.sizes}
        tensors = (*self.inputs.values(), *self.outputs.values())
        named = [entry for spec in tensors for entry in spec.shape or ()]
        free = [entry for entry in named if entry not in axes and not entry.isdecimal()]
        return {name: VarAxis() for name in free} | axes


def _spelled(value: Constant) -> str:
    """A constant as part of a name: `1e-06`, `on`, `neox`."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
