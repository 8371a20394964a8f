"""TOML records, read strictly: every fault at once, each with its key and its line.

A record's type (a `msgspec.Struct` of `bedstone.spec.target`) says all there is to say of its keys,
kinds and ranges. Text that fits is converted at once; only where it does not fit are its tables
walked for what is wrong. An integer serves as a float; nothing else is converted.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Struct, ValidationError

from bedstone.spec.fault import found, shown

RECORD_BYTES = 64 * 1024
"""The longest record that is read."""

Key = tuple[str | int, ...]
RecordT = TypeVar("RecordT", bound=Struct)

_MOST_EDITS = 2
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_TOML_PLACE = re.compile(r"^(.*) \(at (?:line (\d+), column \d+|end of document)\)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RecordFault:
    """One thing wrong with a record; `key` is empty for the whole file, `line` counts from 1."""

    file: str
    key: Key
    line: int | None
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {f'`{spelled(self.key)}`: ' if self.key else ''}{self.message}"


def parse_record(text: str, kind: type[RecordT], file: str) -> RecordT | tuple[RecordFault, ...]:
    """The record of a TOML text, or all that keeps it from being one; faults name `file`."""
    if len(text) > RECORD_BYTES:
        return (RecordFault(file, (), None, f"expected at most {RECORD_BYTES} characters"),)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return (_syntax_fault(file, str(error)),)
    try:
        return msgspec.convert(values, kind)
    except ValidationError:
        return locate(text, file, _misfits(values, kind, ()))


def locate(text: str, file: str, misfits: Iterable[tuple[Key, str]]) -> tuple[RecordFault, ...]:
    """The faults of a record's keys, each with the line its key stands on."""
    listed = list(misfits)
    lines = _lines(text, [key for key, _ in listed])
    return tuple(
        RecordFault(file, key, line, message)
        for (key, message), line in zip(listed, lines, strict=True)
    )


def spelled(key: Key) -> str:
    """A key as TOML spells it, with indices in brackets: `model_types[1].hidden_size`."""
    return "".join(map(_spelled_part, key)).removeprefix(".")


def _spelled_part(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if _BARE_KEY.fullmatch(part) else f'."{part}"'


def nearest(name: str, known: Sequence[str]) -> str | None:
    """The known name that is `name` misspelled, if one is."""
    best = min(known, key=lambda other: _edits(name.lower(), other.lower()), default=None)
    allowed = min(_MOST_EDITS, len(name) // 2)
    return best if best is not None and _edits(name.lower(), best.lower()) <= allowed else None


def _edits(one: str, other: str) -> int:
    """Insertions, deletions and changes of a letter between two words."""
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        before, row[0] = row[0], at
        for i, match in enumerate(other, 1):
            before, row[i] = row[i], min(row[i] + 1, row[i - 1] + 1, before + (letter != match))
    return row[-1]


# --- what is wrong ---------------------------------------------------------------------------


def _misfits(value: object, kind: Any, key: Key) -> Iterator[tuple[Key, str]]:  # noqa: ANN401
    """Each key whose value does not fit, and why."""
    try:
        msgspec.convert(value, kind)
    except ValidationError as error:
        inner = _container(kind)
        if isinstance(value, dict) and isinstance(inner, type) and issubclass(inner, Struct):
            yield from _table_misfits(value, inner, key)
        elif isinstance(value, dict) and get_origin(inner) is dict:
            for name, item in value.items():
                yield from _misfits(item, get_args(inner)[1], (*key, name))
        elif isinstance(value, list) and get_origin(inner) is tuple:
            for at, item in enumerate(value):
                yield from _misfits(item, get_args(inner)[0], (*key, at))
        else:
            yield key, _expectation(error, value)


def _table_misfits(
    value: dict[str, Any], kind: type[Struct], key: Key
) -> Iterator[tuple[Key, str]]:
    fields = {spec.encode_name: spec for spec in msgspec.structs.fields(kind)}
    for name, item in value.items():
        if name in fields:
            yield from _misfits(item, fields[name].type, (*key, name))
        else:
            meant = nearest(name, list(fields))
            hint = f"did you mean `{meant}`?" if meant else f"known are {_listed(fields)}"
            yield (*key, name), f"unknown key; {hint}"
    for name, spec in fields.items():
        required = spec.default is NODEFAULT and spec.default_factory is NODEFAULT
        if required and name not in value:
            yield key, f"expected a key `{name}`, found none"


def _container(kind: Any) -> Any:  # noqa: ANN401
    """The kind itself, or the one besides None of an optional one."""
    kinds = [arm for arm in get_args(kind) if arm is not type(None)]
    optional = len(kinds) == 1 and type(None) in get_args(kind)
    return kinds[0] if optional else kind


def _expectation(error: ValidationError, value: object) -> str:
    """What the error says it expects, and what was found."""
    expected = str(error).partition(" - at `$")[0].partition(", got ")[0]
    return f"{expected[:1].lower()}{expected[1:]}, found {found(value)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# --- where it is -----------------------------------------------------------------------------


def _syntax_fault(file: str, message: str) -> RecordFault:
    placed = _TOML_PLACE.match(message)
    if placed is None:
        return RecordFault(file, (), None, f"no TOML: {shown(message)}")
    line = int(placed[2]) if placed[2] else None
    return RecordFault(file, (), line, f"no TOML: {shown(placed[1])}")


def _lines(text: str, keys: list[Key]) -> list[int | None]:
    """The line each key begins on; that of the table around it where the key is not there.

    A key begins on the line after the last one up to which the file, read by itself, lacks it.
    """
    lines = text.splitlines(keepends=True)
    wanted = {key[:end] for key in keys for end in range(1, len(key) + 1)}
    begins: dict[Key, int] = {}
    start = 1
    for end in range(1, len(lines) + 1):
        try:
            values = tomllib.loads("".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
        for key in wanted - begins.keys():
            if _has(values, key):
                begins[key] = _first_text(lines, start)
        start = end + 1
    return [_nearest_line(key, begins) for key in keys]


def _nearest_line(key: Key, begins: Mapping[Key, int]) -> int | None:
    return next((begins[key[:end]] for end in range(len(key), 0, -1) if key[:end] in begins), None)


def _first_text(lines: list[str], start: int) -> int:
    """The first line from `start` that is neither empty nor a comment."""
    texts = (n for n in range(start, len(lines) + 1) if not _empty(lines[n - 1]))
    return next(texts, start)


def _empty(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _has(values: Any, key: Key) -> bool:  # noqa: ANN401
    for part in key:
        if isinstance(part, int):
            if not isinstance(values, list) or part >= len(values):
                return False
        elif not isinstance(values, dict) or part not in values:
            return False
        values = values[part]
    return True
