"""Typed, bounded reading of a config's fields, and the rule that none of them is ignored.

A family states for each field whether it is *used*, *inert* (with the reason why it cannot change
what the model computes) or *fixed* (supported only at the listed values). Any other field is a
problem that names it.
"""

import math
from collections.abc import Mapping
from typing import TypeVar

from msgspec import field

from bedstone.errors import WeightError
from bedstone.spec.frozen import Frozen

KnownT = TypeVar("KnownT")

SIZE_LIMIT = 1 << 31
"""Sizes in a config stay below this, so that no product of two leaves 64 bits."""


class FieldRules(Frozen):
    """What is known about each field of one config format."""

    used: frozenset[str]
    inert: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, tuple[object, ...]] = field(default_factory=dict)

    def __or__(self, other: "FieldRules") -> "FieldRules":
        return FieldRules(
            self.used | other.used, {**self.inert, **other.inert}, {**self.fixed, **other.fixed}
        )


def check_fields(values: Mapping[str, object], rules: FieldRules) -> list[str]:
    """Say which fields are unknown or stand at a value that is not supported."""
    problems = []
    for name, value in values.items():
        allowed = rules.fixed.get(name)
        if allowed is not None:
            if value not in allowed:
                shown = " or ".join(repr(v) for v in allowed)
                problems.append(f"field `{name}` is {value!r}, supported is {shown}")
        elif name not in rules.used and name not in rules.inert:
            problems.append(f"field `{name}` is not known")
    return problems


def require_fields(values: Mapping[str, object], rules: FieldRules, where: str) -> None:
    """Refuse a config with a field that might change the result and is not supported.

    Raises `WeightError` that names every such field.
    """
    problems = check_fields(values, rules)
    if problems:
        raise WeightError(f"`{where}` is not supported: " + "; ".join(problems))


class Fields(Frozen):
    """The fields of `where`, each read as one type; an absent or null field takes the default."""

    values: Mapping[str, object]
    where: str

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.values.get(name) is not None

    def size(self, name: str, default: int | None = None) -> int:
        """A count from 1 to below `SIZE_LIMIT`."""
        value = self._present(name, default)
        number = _integer(value)
        if number is None or not 0 < number < SIZE_LIMIT:
            raise self._wrong(name, value, f"an integer from 1 to {SIZE_LIMIT - 1}")
        return number

    def count(self, name: str, default: int) -> int:
        """A count that may be zero."""
        if not self.has(name):
            return default
        return 0 if _integer(self.values[name]) == 0 else self.size(name)

    def optional_size(self, name: str) -> int | None:
        """A count, or none where the field is absent or null."""
        return self.size(name) if self.has(name) else None

    def index(self, name: str) -> int | None:
        """A token id, where there is one. Negative stands for none, as some writers put it."""
        value = self.values.get(name)
        if value is None:
            return None
        number = _integer(value)
        if number is None or number >= SIZE_LIMIT:
            raise self._wrong(name, value, "a token id")
        return number if number >= 0 else None

    def ids(self, name: str) -> tuple[int, ...]:
        """Token ids, given as one or as a list."""
        value = self.values.get(name)
        if not isinstance(value, list):
            value = [value]
        ids = (Fields({name: item}, self.where).index(name) for item in value)
        return tuple(i for i in ids if i is not None)

    def listed(self, name: str, known: Mapping[str, KnownT]) -> tuple[KnownT, ...] | None:
        """What each name of a list stands for, where there is one."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(n, str) and n in known for n in value):
            found = sorted({str(n) for n in value}) if isinstance(value, list) else value
            names = ", ".join(f"`{each}`" for each in known)
            raise self._wrong(name, found, f"a list of {names}")
        return tuple(known[n] for n in value)

    def real(self, name: str, default: float | None = None) -> float:
        """A finite number above zero."""
        value = self._present(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, value, "a number")
        number = _as_float(value)
        if not math.isfinite(number) or number <= 0:
            raise self._wrong(name, value, "a finite number above zero")
        return number

    def flag(self, name: str, *, default: bool) -> bool:
        """A boolean."""
        value = self._present(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, value, "true or false")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A string."""
        value = self._present(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, value, "a string")
        return value

    def table(self, name: str) -> "Fields | None":
        """A nested object, where there is one."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._wrong(name, value, "an object")
        return Fields(value, f"{self.where}: {name}")

    def _present(self, name: str, default: object) -> object:
        value = self.values.get(name)
        if value is not None:
            return value
        if default is None:
            raise WeightError(f"`{self.where}` lacks the field `{name}`")
        return default

    def _wrong(self, name: str, value: object, expected: str) -> WeightError:
        found = repr(value)
        shown = found if len(found) <= 80 else found[:77] + "..."
        return WeightError(f"field `{name}` of `{self.where}` is {shown}, expected {expected}")


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
