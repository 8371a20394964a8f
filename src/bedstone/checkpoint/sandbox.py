"""Jinja for programs by whoever shipped a checkpoint: few names, and a meter on what they make.

The immutable sandbox keeps a template from private attributes, mutation and files. The meter keeps
it small and short:

- each round of a loop, call and filter is a *step*, and steps are limited;
- no list, dict or string that a template makes weighs more than `SIZE_LIMIT`, counting what it
  holds as often as it holds it, so that none is long to print or to compare;
- characters and elements made, printed or compared are *room*, and all of it together is limited.

What could make much of little (`'x' | center(n)`, `'%9d' % n`, `'x'.ljust(n)`) is not offered.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set, ValuesView
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from itertools import chain
from types import BuiltinMethodType, NoneType
from typing import Any, Literal

from jinja2 import Environment, Undefined, nodes, pass_context, pass_environment, pass_eval_context
from jinja2.exceptions import SecurityError
from jinja2.filters import do_indent, do_join, do_round, do_sum
from jinja2.nodes import EvalContext
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

SIZE_LIMIT = 16_000_000
"""Characters or elements of any value made on the way; bits of a number."""
ROOM_LIMIT = 100_000_000
"""Characters and elements of everything one rendering makes."""
STEP_LIMIT = 200_000
"""Loop rounds, calls and filters of one rendering."""
SLOT = 4
"""What an element of a container takes besides itself, in characters."""
MOST_DIGITS = 99
COMPARED = 64
"""Comparing as many characters takes the room that making one does."""

FILTERS = frozenset(
    {
        "abs", "attr", "capitalize", "count", "d", "default", "dictsort", "e", "escape", "first",
        "float", "forceescape", "groupby", "int", "items", "last", "length", "list", "lower", "map",
        "max", "min", "reject", "rejectattr", "reverse", "safe", "select", "selectattr", "sort",
        "string", "striptags", "title", "trim", "truncate", "unique", "upper", "urlencode",
        "wordcount",
    }
)  # fmt: skip
"""Jinja's filters that are offered as they are."""
METHODS = frozenset(
    {
        "capitalize", "casefold", "count", "endswith", "find", "index", "isalnum", "isalpha",
        "isdecimal", "isdigit", "islower", "isnumeric", "isspace", "istitle", "isupper", "join",
        "lower", "lstrip", "partition", "removeprefix", "removesuffix", "replace", "rfind",
        "rindex", "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip",
        "swapcase", "title", "upper",
    }
)  # fmt: skip
"""Methods of a string that are offered; numbers have none."""
COMPARISONS = frozenset(
    {
        "==", "eq", "equalto", "!=", "ne", "<", "lt", "lessthan", "<=", "le", ">", "gt",
        "greaterthan", ">=", "ge", "in",
    }
)  # fmt: skip
"""Jinja's tests that look all through their operands."""


@dataclass(slots=True)
class Budget:
    """What is left of one rendering's limits."""

    steps: int = STEP_LIMIT
    room: int = ROOM_LIMIT

    def step(self, count: int = 1) -> None:
        """Spend steps."""
        self.steps -= count
        if self.steps < 0:
            raise SecurityError(f"it takes more than {STEP_LIMIT} steps")

    def take(self, room: int) -> None:
        """Spend room."""
        self.room -= room
        if self.room < 0:
            raise SecurityError(f"it makes more than {ROOM_LIMIT} characters and elements")


_BUDGET: ContextVar[Budget] = ContextVar("budget")


@contextmanager
def budgeted() -> Iterator[None]:
    """A rendering under a budget of its own."""
    token = _BUDGET.set(Budget())
    try:
        yield
    finally:
        _BUDGET.reset(token)


class Sandbox(ImmutableSandboxedEnvironment):
    """The metered environment; `filters` are the template's own, over those of `FILTERS`."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, filters: Mapping[str, Callable[..., Any]], **options: Any) -> None:  # noqa: ANN401
        super().__init__(finalize=_printed_out, **options)
        offered = {**{name: self.filters[name] for name in FILTERS}, **_BOUNDED, **filters}
        self.filters = {name: _metered(filter_) for name, filter_ in offered.items()}
        self.filters |= {f.__name__: f for f in (_rounds, weighed, printed, _compared)}
        self.tests |= {name: _comparing(self.tests[name]) for name in COMPARISONS}
        del self.globals["lipsum"]

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:  # noqa: ANN401
        """Whether a template may read `obj.attr`."""
        if isinstance(obj, str):
            return attr in METHODS
        return not isinstance(obj, int | float) and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> None:  # noqa: ANN401
        """`str.format` is not among the methods offered."""

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Call `obj`, which may be anything a template can reach."""
        _BUDGET.get().step()
        if isinstance(obj, BuiltinMethodType) and isinstance(obj.__self__, str):
            bounded = _BOUNDED_METHODS.get(obj.__name__)
            if bounded is not None:
                return weighed(bounded(obj.__self__, *args, **kwargs))
        return weighed(super().call(context, obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        """Apply an operator whose result may be far larger than its operands."""
        if _result_size(operator, left, right) > SIZE_LIMIT:
            raise SecurityError(f"the result of `{operator}` is too large")
        return weighed(super().call_binop(context, operator, left, right))


def metered(tree: nodes.Template) -> nodes.Template:
    """`tree` with its loops counted, and what it makes, prints and compares weighed."""
    for loop in tree.find_all(nodes.For):
        loop.iter = _filtered(loop.iter, _rounds)
    for joined in tree.find_all(nodes.Concat):
        joined.nodes = [_filtered(node, printed) for node in joined.nodes]
    for compared in tree.find_all(nodes.Compare):
        compared.expr = _filtered(compared.expr, _compared)
        for operand in compared.ops:
            operand.expr = _filtered(operand.expr, _compared)
    for holder in list(tree.find_all(nodes.Node)):
        for name, value in holder.iter_fields():
            if isinstance(value, list):
                setattr(holder, name, [_made(item) for item in value])
            else:
                setattr(holder, name, _made(value))
    return tree


def _made(node: object) -> object:
    """`node`, weighed where it makes a new string or container."""
    match node:
        case (
            nodes.Getitem(arg=nodes.Slice()) | nodes.List() | nodes.Dict() | nodes.Tuple(ctx="load")
        ):
            return _filtered(node, weighed)
        case _:
            return node


def _filtered(node: nodes.Node, function: Callable[..., object]) -> nodes.Filter:
    return nodes.Filter(node, function.__name__, [], [], None, None, lineno=node.lineno)


def _weigh(value: object) -> int:
    """The room that what a value holds takes.

    Raises `SecurityError`: it weighs too much, or holds what is no plain value.
    """
    seen: dict[int, tuple[object, int]] = {}
    _weight(value, seen)
    return SLOT * sum(_extent(held) for held, _ in seen.values())


def _weight(value: object, seen: dict[int, tuple[object, int]]) -> int:
    """Characters and elements of a value and of all it holds, again each time it holds it.

    `seen` keeps the containers met on the way with their weights.
    """
    inside = _inside(value)
    if inside is None:
        return _extent(value)
    if id(value) in seen:
        return seen[id(value)][1]
    flat = _flat_weight(inside)
    held = sum(_weight(item, seen) for item in inside) if flat is None else flat
    weight = len(inside) + held
    if weight > SIZE_LIMIT:
        raise SecurityError("a value is too large")
    seen[id(value)] = (value, weight)
    return weight


def _flat_weight(values: Sequence[Any]) -> int | None:
    """What elements of one plain type weigh, at the speed of the built-in functions."""
    kinds = set(map(type, values))
    if kinds <= {str}:
        return sum(map(len, values))
    if kinds <= {int}:
        return len(values) * max(map(int.bit_length, values), default=0)
    return 0 if kinds <= {bool, float, NoneType} else None


def _inside(value: object) -> Sequence[Any] | None:
    """What a container holds; None for a plain value."""
    if value is None or isinstance(value, str | int | float | range | Undefined):
        return None
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, Sequence | Set | ValuesView):
        return list(value)
    raise SecurityError(f"a {type(value).__name__} is no plain value")


def _extent(value: object) -> int:
    if isinstance(value, int):
        return value.bit_length()
    return len(value) if isinstance(value, str | Mapping | Sequence | Set | ValuesView) else 0


def weighed(value: object) -> object:
    """A value that was just made; what is no value, such as a namespace, weighs nothing."""
    if value is None or isinstance(value, str | int | Mapping | Sequence | Set | ValuesView):
        _BUDGET.get().take(_weigh(value) + _extent(value))
    return value


def printed(value: object) -> object:
    """A plain value about to become text."""
    _BUDGET.get().take(_weigh(value) + _extent(value))
    return value


def _compared(value: object) -> object:
    if isinstance(value, str | Mapping | Sequence | Set | ValuesView):
        _BUDGET.get().take(_weigh(value) + _extent(value) // COMPARED)
    return value


@pass_context  # so that nothing is printed while a template is compiled, without a budget
def _printed_out(_context: Context, value: object) -> object:
    return printed(value)


def _rounds(values: Iterable[object]) -> Iterable[object]:
    """`values`, each of which costs a step; a sequence stays one, for `loop.length`."""
    if isinstance(values, Sequence | Mapping):
        _BUDGET.get().step(len(values))
        return values
    return _each(values)


def _each(values: Iterable[object]) -> Iterator[object]:
    for value in values:
        _BUDGET.get().step()
        yield value


def _metered(filter_: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that costs a step and the room of what it makes."""
    # the first argument of some is not the template's but the environment's
    own = 1 if hasattr(filter_, "jinja_pass_arg") else 0

    @wraps(filter_)
    def metered_filter(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        _BUDGET.get().step()
        for value in chain(args[own:], kwargs.values()):
            if type(value).__name__ == "Namespace":
                raise SecurityError("a namespace is no value for a filter")
        return weighed(filter_(*args, **kwargs))

    return metered_filter


def _comparing(test: Any) -> Callable[..., Any]:  # noqa: ANN401  (Jinja types it as a function)
    @wraps(test)
    def comparing(*operands: object) -> Any:  # noqa: ANN401
        return test(*map(_compared, operands))

    return comparing


def _result_size(operator: str, left: object, right: object) -> int:
    """Characters, elements or bits of a sum, product, power or remainder."""
    if operator == "%" and isinstance(left, str):
        raise SecurityError("`%` formats no text here")
    if operator == "**":
        return _extent(left) * right if isinstance(right, int) else 0
    for many, times in ((left, right), (right, left)):
        if operator == "*" and isinstance(times, int) and not isinstance(many, int | float):
            return _extent(many) * times
    return _extent(left) + _extent(right)


def _require_size(size: int) -> None:
    if size > SIZE_LIMIT:
        raise SecurityError("a string is too large")


def _replace(text: object, old: str, new: str, count: int | None = None) -> str:
    whole = str(text)
    _require_size(len(whole) + whole.count(old) * len(new))
    return whole.replace(old, new, -1 if count is None else count)


def _join(between: str, values: Iterable[str]) -> str:
    parts = list(values)
    _require_size(len(between) * len(parts) + sum(map(_extent, parts)))
    return between.join(parts)


@pass_eval_context
def _join_filter(
    context: EvalContext, values: Iterable[object], d: str = "", attribute: str | int | None = None
) -> str:
    parts = list(values)
    _weigh(parts)
    _require_size(len(d) * len(parts))
    return str(do_join(context, parts, d, attribute))


def _indent(
    text: str,
    width: int | str = 4,
    first: bool = False,  # noqa: FBT001, FBT002 - the filter's signature in templates
    blank: bool = False,  # noqa: FBT001, FBT002
) -> str:
    by = len(width) if isinstance(width, str) else width
    _require_size(len(text) + (1 + text.count("\n")) * by)
    return do_indent(text, width, first, blank)


@pass_environment
def _sum(
    environment: Environment,
    values: Iterable[Any],
    attribute: str | int | None = None,
    start: float = 0,
) -> Any:  # noqa: ANN401
    if not isinstance(start, int | float):
        raise SecurityError("`sum` adds numbers, not what grows by each of them")
    return do_sum(environment, values, attribute, start)


def _round(
    value: float, precision: int = 0, method: Literal["common", "ceil", "floor"] = "common"
) -> float:
    if abs(precision) > MOST_DIGITS:
        raise SecurityError(f"`round` is to {MOST_DIGITS} digits at most")
    return do_round(value, precision, method)


_BOUNDED: Mapping[str, Callable[..., Any]] = {
    "indent": _indent,
    "join": _join_filter,
    "replace": _replace,
    "round": _round,
    "sum": _sum,
}
"""Filters that are offered where what they make stays small."""
_BOUNDED_METHODS: Mapping[str, Callable[..., str]] = {"join": _join, "replace": _replace}
"""Methods of a string that are."""
