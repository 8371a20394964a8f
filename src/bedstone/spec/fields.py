"""Takes the known fields out of a JSON object, notes what does not fit, and keeps the rest."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from bedstone.spec.fault import found
from bedstone.spec.finding import Findings, Severity

Trail = tuple[str | int, ...]
T = TypeVar("T")

Extra = Mapping[str, Any]
"""Members of an object that its type does not know: kept, and written back."""


class Fields:
    """The members of one object of a document; each is taken once, `rest` is what nobody took.

    A member of the wrong kind is an error among the findings and reads as the neutral value of
    its kind: whoever asked goes on, and every fault is found in one reading.
    """

    def __init__(self, value: object, trail: Trail, findings: Findings) -> None:
        self.trail = trail
        self.findings = findings
        self._members: dict[str, Any] = {}
        if isinstance(value, dict):
            self._members = dict(value)
        else:
            self.note("error", f"expected an object, found {found(value)}")

    def __contains__(self, key: str) -> bool:
        return key in self._members

    def note(self, severity: Severity, message: str, *below: str | int) -> None:
        """Add a finding about this object, or about something `below` it."""
        self.findings.add(severity, (*self.trail, *below), message)

    def take(self, key: str) -> Any:  # noqa: ANN401  (any JSON value)
        """A member as it is; None where it is missing or null."""
        return self._members.pop(key, None)

    def text(self, key: str) -> str:
        """A string that must be there and not empty."""
        value = self.take(key)
        if isinstance(value, str) and value:
            return value
        self._misfit(key, "a string that is not empty", value)
        return ""

    def maybe_text(self, key: str) -> str | None:
        """A string, or None where it is missing or null."""
        value = self.take(key)
        if value is None or isinstance(value, str):
            return value
        self._misfit(key, "a string", value)
        return None

    def flag(self, key: str, *, default: bool) -> bool:
        """A boolean; `default` where it is missing or null."""
        value = self.take(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self._misfit(key, "true or false", value)
        return bool(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """An array of strings; missing and null are the same as empty."""
        value = self.take(key)
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(item, str) and item for item in value):
            return tuple(value)
        self._misfit(key, "an array of strings that are not empty", value)
        return ()

    def mapping(self, key: str, read: Callable[[Any, Trail], T]) -> dict[str, T]:
        """An object that must be there, each member read by `read`."""
        value = self.take(key)
        if not isinstance(value, dict):
            self._misfit(key, "an object", value)
            return {}
        if "" in value:
            self.note("error", "a name is empty", key)
        return {name: read(item, (*self.trail, key, name)) for name, item in value.items()}

    def items(self, key: str) -> Iterator[tuple[Any, Trail]]:
        """The elements of an array that must be there, each with its trail."""
        value = self.take(key)
        if not isinstance(value, list):
            self._misfit(key, "an array", value)
            return
        for at, item in enumerate(value):
            yield item, (*self.trail, key, at)

    def count(self, key: str) -> int:
        """An integer that must be there and not negative."""
        value = self.take(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        self._misfit(key, "an integer of at least 0", value)
        return 0

    def number(self, key: str, default: float) -> float:
        """A finite number, or one of the strings `NaN`, `Infinity`; `default` where missing."""
        value = self.take(key)
        if value is None:
            return default
        if isinstance(value, str) and value.lower() in ("nan", "infinity", "-infinity"):
            return float(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        self._misfit(key, "a number", value)
        return default

    def rest(self) -> Extra:
        """The members nobody took."""
        return dict(self._members)

    def _misfit(self, key: str, expected: str, value: object) -> None:
        what = "nothing" if value is None else found(value)
        self.note("error", f"expected {expected}, found {what}", key)
