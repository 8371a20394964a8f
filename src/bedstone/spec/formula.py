"""The language of constraints and computed axes: Python expressions, a few of their forms only.

Integers, floats and booleans; comparisons, `in`, `and`, `or`, `not`, arithmetic, a choice;
`x.shape[i]`, `x[i]`, `x.item()`, `x.min()`, `x.max()`, `x.numel()`, `len(x)`, `min`, `max`, `abs`.
The text is untrusted: nothing is executed, sizes are bounded, and what is not in the language, or
reads what nobody knows, is undecidable.
"""

import ast
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

LONGEST = 2000
"""Characters of an expression."""

_LARGEST = 2**80
_Tree = ast.expr
_Form = Any
"""A tree of the one form that its function is listed for."""


class UndecidableError(Exception):
    """An expression has no value here: outside the language, or about what is not known."""


class Tensor(Protocol):
    """What an expression may ask of a tensor; contents may be unknown."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        ...

    def at(self, index: tuple[int, ...]) -> int | float | bool:
        """One element; an `UndecidableError` where contents are not known."""
        ...

    def extreme(self, which: Literal["min", "max"]) -> int | float | bool:
        """The least or greatest element; an `UndecidableError` where contents are not known."""
        ...


@dataclass(frozen=True, slots=True)
class ShapeOnly:
    """A tensor of which only the sizes are known."""

    shape: tuple[int, ...]

    def at(self, _index: tuple[int, ...]) -> int:
        """Nothing is known of its elements."""
        raise UndecidableError("contents are not known")

    def extreme(self, _which: Literal["min", "max"]) -> int:
        """Nothing is known of its elements."""
        raise UndecidableError("contents are not known")


Value = Any
"""A number, a boolean, a tuple of them, or a `Tensor`, perhaps indexed."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A tensor indexed along its first axes."""

    tensor: Tensor
    index: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape[len(self.index) :]


def parse_formula(text: str) -> _Tree:
    """The tree of an expression; an `UndecidableError` where it is no Python expression."""
    if len(text) > LONGEST:
        raise UndecidableError(f"longer than {LONGEST} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UndecidableError("not an expression") from error


def names(text: str) -> frozenset[str]:
    """Every name an expression reads; empty where it does not parse."""
    try:
        tree = parse_formula(text)
    except UndecidableError:
        return frozenset()
    return frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name)) - _CALLS.keys()


def evaluate(text: str, scope: Mapping[str, Value]) -> Value:
    """The value of an expression under `scope`.

    An `UndecidableError` says that it has none: outside the language, an unknown name, a division
    by zero, an index out of range, contents nobody knows.
    """
    try:
        return _plain(_value(parse_formula(text), scope))
    except (ArithmeticError, IndexError, TypeError, ValueError, RecursionError) as error:
        raise UndecidableError(str(error)) from error


def holds(text: str, scope: Mapping[str, Value]) -> bool | None:
    """Whether a constraint holds; None where that cannot be decided."""
    try:
        value = evaluate(text, scope)
    except UndecidableError:
        return None
    return bool(value) if isinstance(value, (bool, int, float)) else None


def size(text: str, scope: Mapping[str, int]) -> int:
    """The size a computed axis has; an `UndecidableError` where it is no integer of at least 0."""
    value = evaluate(text, scope)
    if isinstance(value, bool) or value != int(value) or value < 0:
        raise UndecidableError(f"expected an integer of at least 0, found {value}")
    return int(value)


def sides(text: str) -> tuple[str, str] | None:
    """The two sides of a constraint that is one equation."""
    try:
        tree = parse_formula(text)
    except UndecidableError:
        return None
    match tree:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return ast.unparse(left), ast.unparse(right)
        case _:
            return None


def solve(constraint: str, name: str, scope: Mapping[str, Value]) -> int | None:
    """The value of `name` that makes an equation or a bound hold, if its sides are linear in it."""
    for relation in ("==", "<=", ">="):
        left, mark, right = constraint.partition(relation)
        if mark:
            return _root(f"({left}) - ({right})", name, scope)
    return None


def _root(difference: str, name: str, scope: Mapping[str, Value]) -> int | None:
    try:
        at = [evaluate(difference, {**scope, name: x}) for x in (0, 1, 2)]
    except UndecidableError:
        return None
    slope = at[1] - at[0]
    if slope == 0 or at[2] - at[1] != slope:
        return None
    root = Fraction(-at[0]) / Fraction(slope)
    return int(root) if root.denominator == 1 and root >= 0 else None


def last_element(text: str) -> str | None:
    """The tensor of which an expression reads the last element: `t[-1]`, perhaps `.item()`."""
    try:
        tree = parse_formula(text)
    except UndecidableError:
        return None
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) and not tree.args:
        tree = tree.func.value if tree.func.attr == "item" else tree
    match tree:
        case ast.Subscript(value=ast.Name(id=name), slice=index) if ast.unparse(index) == "-1":
            return name
        case _:
            return None


def _value(tree: _Tree, scope: Mapping[str, Value]) -> Value:
    rule = _FORMS.get(type(tree))
    if rule is None:
        raise UndecidableError(f"`{ast.unparse(tree):.60}` is outside the language")
    return rule(tree, scope)


def _constant(tree: _Form, _scope: Mapping[str, Value]) -> Value:
    if isinstance(tree.value, (bool, int, float)):
        return _bounded(tree.value)
    raise UndecidableError(f"`{tree.value!r:.60}` is no number")


def _name(tree: _Form, scope: Mapping[str, Value]) -> Value:
    if tree.id not in scope:
        raise UndecidableError(f"`{tree.id}` is not known")
    value = scope[tree.id]
    return value if isinstance(value, (bool, int, float, tuple)) else _Part(value)


def _tuple(tree: _Form, scope: Mapping[str, Value]) -> Value:
    return tuple(_plain(_value(item, scope)) for item in tree.elts)


def _binary(tree: _Form, scope: Mapping[str, Value]) -> Value:
    left, right = _plain(_value(tree.left, scope)), _plain(_value(tree.right, scope))
    if isinstance(tree.op, ast.Pow) and (abs(right) > 64 or abs(left) > 2**20):
        raise UndecidableError("a power too large")
    return _bounded(_operator(tree.op)(left, right))


def _unary(tree: _Form, scope: Mapping[str, Value]) -> Value:
    return _operator(tree.op)(_plain(_value(tree.operand, scope)))


def _logic(tree: _Form, scope: Mapping[str, Value]) -> Value:
    """`and` and `or` where one side may be undecidable: decided if the other decides."""
    decisive = isinstance(tree.op, ast.Or)
    unknown: UndecidableError | None = None
    for item in tree.values:
        try:
            if bool(_plain(_value(item, scope))) == decisive:
                return decisive
        except UndecidableError as error:
            unknown = error
    if unknown is not None:
        raise unknown
    return not decisive


def _compare(tree: _Form, scope: Mapping[str, Value]) -> Value:
    values = [_plain(_value(item, scope)) for item in (tree.left, *tree.comparators)]
    pairs = zip(tree.ops, values, values[1:], strict=False)
    return all(_operator(op)(left, right) for op, left, right in pairs)


def _choice(tree: _Form, scope: Mapping[str, Value]) -> Value:
    chosen = tree.body if _plain(_value(tree.test, scope)) else tree.orelse
    return _value(chosen, scope)


def _subscript(tree: _Form, scope: Mapping[str, Value]) -> Value:
    value = _value(tree.value, scope)
    index = _plain(_value(tree.slice, scope))
    for at in index if isinstance(index, tuple) else (index,):
        value = _indexed(value, operator.index(at))
    return value


def _indexed(value: Value, at: int) -> Value:
    if not isinstance(value, _Part):
        return value[at]
    length = value.shape[0] if value.shape else 0
    if not -length <= at < length:
        raise UndecidableError(f"index {at} is outside {length} elements")
    return _Part(value.tensor, (*value.index, at % length))


def _attribute(tree: _Form, scope: Mapping[str, Value]) -> Value:
    value = _value(tree.value, scope)
    if isinstance(value, _Part) and tree.attr == "shape":
        return value.shape
    if isinstance(value, _Part) and tree.attr == "ndim":
        return len(value.shape)
    raise UndecidableError(f"`.{tree.attr}` is outside the language")


def _call(tree: _Form, scope: Mapping[str, Value]) -> Value:
    if tree.keywords:
        raise UndecidableError("keyword arguments are outside the language")
    match tree.func:
        case ast.Name(id=name) if name in _CALLS:
            return _CALLS[name](*(_value(item, scope) for item in tree.args))
        case ast.Attribute(value=owner, attr=name) if name in _METHODS:
            arguments = [_plain(_value(item, scope)) for item in tree.args]
            return _METHODS[name](_value(owner, scope), *arguments)
        case _:
            raise UndecidableError(f"`{ast.unparse(tree.func):.60}` is outside the language")


def _plain(value: Value) -> Value:
    """A number where `value` is one element of a tensor."""
    if not isinstance(value, _Part):
        return value
    if value.shape and value.shape != (1,):
        raise UndecidableError("a tensor is not a number")
    return value.tensor.at(value.index + (0,) * len(value.shape))


def _length(value: Value) -> int:
    return value.shape[0] if isinstance(value, _Part) else len(value)


def _count(value: _Part) -> int:
    total = 1
    for extent in value.shape:
        total *= extent
    return total


def _extreme(which: Literal["min", "max"]) -> Callable[..., Value]:
    def over(*values: Value) -> Value:
        if len(values) == 1 and isinstance(values[0], _Part) and not values[0].index:
            return values[0].tensor.extreme(which)
        plain = [_plain(value) for value in values]
        return (min if which == "min" else max)(*plain)

    return over


def _bounded(value: Value) -> Value:
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise UndecidableError("a number too large")
    return value


def _operator(op: ast.AST) -> Callable[..., Value]:
    if type(op) not in _OPERATORS:
        raise UndecidableError(f"{type(op).__name__} is outside the language")
    return _OPERATORS[type(op)]


_OPERATORS: dict[type[ast.AST], Callable[..., Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}
_CALLS: dict[str, Callable[..., Value]] = {
    "len": _length,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "abs": lambda value: abs(_plain(value)),
    "int": lambda value: int(_plain(value)),
}
_METHODS: dict[str, Callable[..., Value]] = {
    "item": _plain,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "numel": _count,
    "dim": lambda part: len(part.shape),
    "size": lambda part, at: part.shape[at],
}
_FORMS: dict[type[ast.expr], Callable[[Any, Mapping[str, Value]], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Tuple: _tuple,
    ast.List: _tuple,
    ast.Set: _tuple,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _logic,
    ast.Compare: _compare,
    ast.IfExp: _choice,
    ast.Subscript: _subscript,
    ast.Attribute: _attribute,
    ast.Call: _call,
}


def decided(
    constraints: tuple[str, ...], scope: Mapping[str, Value]
) -> Iterator[tuple[str, bool | None]]:
    """Each constraint and whether it holds."""
    for constraint in constraints:
        yield constraint, holds(constraint, scope)
