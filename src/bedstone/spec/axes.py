"""Sizes: what every axis is once the variable ones are given, and what real shapes say of them."""

from collections.abc import Mapping, Sequence

from bedstone.errors import DefinitionError
from bedstone.spec import formula
from bedstone.spec.definition import ConstAxis, Definition, ExprAxis, TensorSpec

Shape = tuple[int, ...]


def axis_values(definition: Definition, given: Mapping[str, int]) -> dict[str, int]:
    """The size of every axis.

    Args:
        definition: Whose axes.
        given: A size for each variable axis; a const axis may be repeated with its own size.

    Returns:
        Const, variable and computed axes by name.

    Raises:
        DefinitionError: a variable axis is missing, a const one differs, or a computed one has
            no value.
    """
    values = definition.const_axes
    for name, value in given.items():
        if values.get(name, value) != value:
            raise DefinitionError(
                f"`{definition.name}` fixes axis `{name}` at {values[name]}, found {value}"
            )
    missing = [name for name in definition.var_axes if name not in given]
    if missing:
        raise DefinitionError(f"`{definition.name}` is not told axis `{missing[0]}`")
    values |= {name: given[name] for name in definition.var_axes}
    return values | _computed(definition, values)


def _computed(definition: Definition, values: Mapping[str, int]) -> dict[str, int]:
    """The computed axes, in whatever order they build on each other."""
    waiting = {n: a.expression for n, a in definition.axes.items() if isinstance(a, ExprAxis)}
    known: dict[str, int] = {}
    while waiting:
        ready = [n for n, text in waiting.items() if not formula.names(text) & waiting.keys()]
        if not ready:
            raise DefinitionError(
                f"`{definition.name}`: axis `{min(waiting)}` is computed from itself"
            )
        for name in ready:
            known[name] = _size(definition, name, waiting.pop(name), {**values, **known})
    return known


def _size(definition: Definition, name: str, text: str, scope: Mapping[str, int]) -> int:
    try:
        return formula.size(text, scope)
    except formula.UndecidableError as error:
        raise DefinitionError(
            f"`{definition.name}`: axis `{name}` = `{text}` has no value: {error}"
        ) from None


def shape_of(spec: TensorSpec, values: Mapping[str, int]) -> Shape | None:
    """The sizes of a tensor, in values of its element type; None for a scalar."""
    if spec.shape is None:
        return None
    return tuple(extent(entry, values) for entry in spec.shape)


def extent(entry: str, values: Mapping[str, int]) -> int:
    """The size an entry of a shape stands for: an axis, or a literal."""
    return int(entry) if entry.isdecimal() else values[entry]


def bind(definition: Definition, shapes: Sequence[Shape | None]) -> dict[str, int]:
    """The size of every axis, read off real inputs and checked against all of them.

    Args:
        definition: Whose inputs.
        shapes: The shape of each input in order; None for a scalar or an input left out.

    Returns:
        Every axis by name.

    Raises:
        DefinitionError: a rank or a size differs from what the Definition or another input says,
            or neither an input nor an equation tells a variable axis.
    """
    seen: dict[str, tuple[str, int]] = {}
    for (name, spec), shape in zip(definition.inputs.items(), shapes, strict=False):
        _require_rank(definition, name, spec, shape)
        for entry, size in zip(spec.shape or (), shape or (), strict=False):
            first, known = seen.setdefault(entry, (name, size))
            if known != size:
                raise DefinitionError(
                    f"`{definition.name}`: axis `{entry}` is {known} in input `{first}` "
                    f"and {size} in input `{name}`"
                )
    sizes = {entry: size for entry, (_, size) in seen.items()}
    values = axis_values(definition, _told(definition, sizes))
    _require_sizes(definition, sizes, values)
    return values


def _told(definition: Definition, sizes: Mapping[str, int]) -> dict[str, int]:
    """Variable axes that inputs have, and those that equations then give."""
    known = definition.const_axes | dict(sizes)
    for name in definition.var_axes:
        equations = (c for c in definition.constraints if formula.sides(c) and name not in known)
        solved = (formula.solve(equation, name, known) for equation in equations)
        value = next((size for size in solved if size is not None), None)
        if value is not None:
            known[name] = value
    return {name: known[name] for name in definition.var_axes if name in known}


def _require_rank(definition: Definition, name: str, spec: TensorSpec, shape: Shape | None) -> None:
    if shape is None and (spec.shape is None or spec.optional):
        return
    if shape is None or spec.shape is None or len(spec.shape) != len(shape):
        wanted = "a scalar" if spec.shape is None else f"{len(spec.shape)} axes"
        actual = "a scalar" if shape is None else f"{len(shape)} axes"
        raise DefinitionError(
            f"`{definition.name}`: expected {wanted} in input `{name}`, found {actual}"
        )


def _require_sizes(
    definition: Definition, sizes: Mapping[str, int], values: Mapping[str, int]
) -> None:
    for entry, size in sizes.items():
        expected = extent(entry, values)
        if expected != size:
            what = "computes" if isinstance(definition.axes.get(entry), ExprAxis) else "fixes"
            raise DefinitionError(
                f"`{definition.name}` {what} axis `{entry}` at {expected}, found {size}"
            )


def bindings(definition: Definition) -> dict[str, tuple[str, int]]:
    """For each variable axis the first input that tells it, and which of its axes."""
    found: dict[str, tuple[str, int]] = {}
    for name, spec in definition.inputs.items():
        for at, entry in enumerate(spec.shape or ()):
            if entry in definition.var_axes:
                found.setdefault(entry, (name, at))
    return found


def is_const(definition: Definition, entry: str) -> bool:
    """Whether an entry of a shape is the same in every Workload."""
    return entry.isdecimal() or isinstance(definition.axes.get(entry), ConstAxis)
