"""A program ready to run: its captures, and the vars they are for."""

from collections.abc import Container, Iterable, Mapping
from typing import SupportsIndex

from bedstone.errors import CallerError
from bedstone.runtime.image import Capture, Image
from bedstone.runtime.lower import LoweredProgram
from bedstone.spec.manifest import Var

_MOST_CAPTURES = 64


class LoadedProgram:
    """Hands out the launch list of a program for an assignment of the vars it reads.

    A program that repeats keeps one capture for each assignment it has seen lately; any other has a
    single one, rewritten when the assignment changes.
    """

    def __init__(self, program: LoweredProgram, image: Image, declared: Mapping[str, Var]) -> None:
        self.name = program.name
        self.reads = program.reads
        self._image = image
        self._declared = declared
        self._most = _MOST_CAPTURES if program.repeats else 1
        self._kept = program.repeats
        self._captures: dict[tuple[int, ...], Capture] = {}

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
        # forgotten before it is rewritten: an interrupt between the two must not leave it trusted
        capture = self._oldest() if len(self._captures) == self._most else None
        if capture is None:
            capture = Capture(self._image, kept=self._kept)
        capture.bind(dict(zip(self.reads, key, strict=True)))
        self._captures[key] = capture
        return capture

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
