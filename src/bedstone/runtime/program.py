"""A program ready to run: its captures, and the vars they are for."""

from collections.abc import Container, Iterable, Mapping
from typing import SupportsIndex

from bedstone.errors import CallerError
from bedstone.runtime.image import Capture, Image
from bedstone.runtime.lower import LoweredProgram
from bedstone.spec.manifest import Var

_MOST_CAPTURES = 64
_TIMES = 3
"""How often an assignment is asked for until it is worth a capture of its own."""


class LoadedProgram:
    """Hands out the launch list of a program for an assignment of the vars it reads.

    A program that repeats keeps one capture for each assignment it has seen lately. So does any
    other for those that come again, such as pieces of prompts of one length; for the rest it has
    a single one, rewritten when the assignment changes.
    """

    def __init__(self, program: LoweredProgram, image: Image, declared: Mapping[str, Var]) -> None:
        self.name = program.name
        self.reads = program.reads
        self._image = image
        self._declared = declared
        self._repeats = program.repeats
        self._captures: dict[tuple[int, ...], Capture] = {}
        self._seen: dict[tuple[int, ...], int] = {}
        self._passing: Capture | None = None
        self._passing_key: tuple[int, ...] | None = None

    def capture(self, given: Mapping[str, int]) -> Capture:
        """The launch list for the vars `given`; those it does not read are ignored.

        Raises `CallerError`: a var it reads is missing or out of range, or one is not declared.
        """
        where = f"program `{self.name}`"
        key = tuple(self._value(where, name, given) for name in self.reads)
        if len(given) > len(key):
            require_declared(where, given, self._declared)
        found = self._captures.get(key)
        return found if found is not None else self._captured(key)

    def _captured(self, key: tuple[int, ...]) -> Capture:
        if not (self._repeats or self._comes_again(key)):
            return self._passed(key)
        # forgotten before it is rewritten: an interrupt between the two must not leave it trusted
        capture = self._oldest() if len(self._captures) == _MOST_CAPTURES else None
        if capture is None:
            capture = Capture(self._image, kept=True)
        capture.bind(dict(zip(self.reads, key, strict=True)))
        self._captures[key] = capture
        return capture

    def _comes_again(self, key: tuple[int, ...]) -> bool:
        """Whether an assignment was often asked for, among the latest of them."""
        times = self._seen.pop(key, 0) + 1
        if times == _TIMES:
            return True
        if len(self._seen) == _MOST_CAPTURES:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = times
        return False

    def _passed(self, key: tuple[int, ...]) -> Capture:
        """The capture of whatever is asked for now."""
        if self._passing is None:
            self._passing = Capture(self._image)
        if self._passing_key != key:
            self._passing_key = None
            self._passing.bind(dict(zip(self.reads, key, strict=True)))
            self._passing_key = key
        return self._passing

    def _oldest(self) -> Capture:
        return self._captures.pop(next(iter(self._captures)))

    def _value(self, where: str, name: str, given: Mapping[str, int]) -> int:
        value = given.get(name)
        if value is None:
            raise CallerError(
                f"{where}: var `{name}` not provided; it reads "
                + ", ".join(f"`{read}`" for read in self.reads)
            )
        return require_value(where, name, value, self._declared[name])


def require_value(where: str, name: str, value: int, declared: Var) -> int:
    """The value that a caller gives a var.

    Raises `CallerError`: it is no integer, or outside what the var declares.
    """
    # True and 3.0 would pass as numbers; numpy's integers are integers
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, SupportsIndex)):
        raise CallerError(f"{where}: var `{name}` is {value!r}, expected an integer")
    if not 1 <= value <= declared.max:
        raise CallerError(f"{where}: var `{name}` = {value} outside declared [1, {declared.max}]")
    return int(value)


def require_declared(where: str, given: Iterable[str], declared: Container[str]) -> None:
    """Accept names of vars that the manifest declares; another is a `CallerError`."""
    for name in given:
        if name not in declared:
            raise CallerError(f"{where}: the manifest declares no var `{name}`")
