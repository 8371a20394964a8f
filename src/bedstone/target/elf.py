"""The little of an ELF file that says what a compiled module is: machine, symbols, sections.

Shared objects and cubins are both ELF, 64-bit and little-endian here. The bytes are untrusted:
every offset is checked before it is used.
"""

import struct
from collections.abc import Iterator

from bedstone.errors import KernelError
from bedstone.spec.frozen import Frozen

MAGIC = b"\x7fELF"
CUDA_MACHINE = 190

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLES = (2, 11)
_NO_BITS = 8
_NO_SECTION = 0
_CLASS_64, _LITTLE_ENDIAN = 2, 1


class Symbol(Frozen):
    """A defined symbol: `type` and `other` as ELF has them, `data` its bytes in the file."""

    name: str
    type: int
    other: int
    data: bytes


class Elf(Frozen):
    """An ELF file; `abi` is the version of its ABI."""

    machine: int
    abi: int
    flags: int
    symbols: tuple[Symbol, ...]


class _Section(Frozen):
    name: int
    kind: int
    address: int
    offset: int
    size: int
    link: int


def parse_elf(data: bytes, module: str) -> Elf:
    """What the file of `module` is; bytes that are no whole ELF file are a `KernelError`."""
    try:
        return _parse(data)
    except (struct.error, ValueError) as error:
        raise KernelError(f"module `{module}` is no whole ELF file: {error}") from error


def named_sections(data: bytes, module: str) -> dict[str, bytes]:
    """The bytes of each section by its name, the first of one name; raises as `parse_elf` does."""
    try:
        return _named(data, _sections(data))
    except (struct.error, ValueError) as error:
        raise KernelError(f"module `{module}` is no whole ELF file: {error}") from error


def text_at(data: bytes) -> str:
    """The string that begins the bytes of a symbol."""
    return data.partition(b"\0")[0].decode(errors="replace")


def _named(data: bytes, sections: list[_Section]) -> dict[str, bytes]:
    home = _HEADER.unpack_from(data)[-1]
    if home == _NO_SECTION:
        return {}
    if home >= len(sections):
        raise ValueError("no section names the sections")
    names = _bytes(data, sections[home])
    return {
        names[section.name : _end(names, section.name)].decode(errors="replace"): (
            b"" if section.kind == _NO_BITS else _bytes(data, section)
        )
        for section in reversed(sections)
    }


def _parse(data: bytes) -> Elf:
    sections = _sections(data)
    identity, _, machine, _, _, _, _, flags, *_ = _HEADER.unpack_from(data)
    return Elf(machine, identity[8], flags, tuple(_symbols(data, sections)))


def _sections(data: bytes) -> list[_Section]:
    identity, _, _, _, _, _, table, _, _, _, _, _, count, _ = _HEADER.unpack_from(data)
    if identity[:6] != MAGIC + bytes((_CLASS_64, _LITTLE_ENDIAN)):
        raise ValueError("expected 64-bit little-endian ELF")
    if table + count * _SECTION.size > len(data):
        raise ValueError(f"the section table ends beyond byte {len(data)}")
    return [_section(_SECTION.unpack_from(data, table + at * _SECTION.size)) for at in range(count)]


def _section(row: tuple[int, ...]) -> _Section:
    name, kind, _, address, offset, size, link, *_ = row
    return _Section(name, kind, address, offset, size, link)


def _symbols(data: bytes, sections: list[_Section]) -> Iterator[Symbol]:
    for section in sections:
        if section.kind not in _SYMBOL_TABLES:
            continue
        if section.link >= len(sections):
            raise ValueError("a symbol table names no string table")
        names = _bytes(data, sections[section.link])
        for name, info, other, home, value, size in _SYMBOL.iter_unpack(_bytes(data, section)):
            if 0 < home < len(sections):
                spelled = names[name : _end(names, name)].decode(errors="replace")
                yield Symbol(spelled, info & 15, other, _held(data, sections[home], value, size))


def _bytes(data: bytes, section: _Section) -> bytes:
    end = section.offset + section.size
    if end > len(data):
        raise ValueError(f"a section ends at byte {end} of {len(data)}")
    return data[section.offset : end]


def _held(data: bytes, section: _Section, value: int, size: int) -> bytes:
    """The bytes of a symbol; its value is an address, or an offset where the section has none."""
    if section.kind == _NO_BITS:
        return b""
    start = section.offset + value - section.address
    if start < 0 or start + size > len(data):
        raise ValueError("a symbol lies outside the file")
    return data[start : start + size]


def _end(names: bytes, start: int) -> int:
    end = names.find(b"\0", start)
    if start >= len(names) or end < 0:
        raise ValueError("a symbol's name lies outside its table")
    return end
