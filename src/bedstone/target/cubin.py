"""What machine code of an NVIDIA GPU states of itself: its architecture, its kernels' parameters.

The flags of the file say for which device it is; whether it is of an `a` or `f` kind stands only in
the note that the assembler leaves about how it was called. A kernel's parameters stand in a section
of attributes, as bytes without types.
"""

import re
import struct
from collections.abc import Iterable, Iterator

from bedstone.errors import KernelError
from bedstone.target.elf import Elf, named_sections, parse_elf

_TOOL_NOTE = ".note.nv.tkinfo"
_CALLED_FOR = re.compile(rb"-arch[ =](sm_\d+[af]?)(?![0-9a-z])")
_SHIFTED_ABI = 8

_ATTRIBUTES = ".nv.info."
_ATTRIBUTE = struct.Struct("<BBH")
_SIZED = 4
_PARAMETER = 0x17
_PARAMETER_BODY = struct.Struct("<IHHI")
_SIZE_SHIFT = 18


def cubin_arch(data: bytes, module: str) -> str:
    """The architecture of a cubin, without a suffix where it does not state one.

    Bytes that are no whole ELF file are a `KernelError`.
    """
    number = _device_number(parse_elf(data, module))
    note = named_sections(data, module).get(_TOOL_NOTE, b"")
    called = [found.decode() for found in _CALLED_FOR.findall(note)]
    # the flags bind: a note that speaks of another device is not believed
    return next((arch for arch in called if arch.rstrip("af") == f"sm_{number}"), f"sm_{number}")


def cubin_parameters(data: bytes, module: str) -> dict[str, tuple[int, ...]]:
    """Of each kernel that states them, the bytes of its parameters in their order.

    Bytes that are no whole ELF file, or attributes cut short, are a `KernelError`.
    """
    sections = named_sections(data, module)
    try:
        return {
            name.removeprefix(_ATTRIBUTES): _sizes(body)
            for name, body in sections.items()
            if name.startswith(_ATTRIBUTES)
        }
    except struct.error as error:
        raise KernelError(f"module `{module}` states parameters that are cut short") from error


def spelled_sizes(sizes: Iterable[int]) -> str:
    """The bytes of parameters as an audit compares and shows them."""
    return ", ".join(f"{size} B" for size in sizes)


def _sizes(body: bytes) -> tuple[int, ...]:
    bodies = (held for kind, held in _attributes(body) if kind == _PARAMETER)
    found = {
        ordinal: packed >> _SIZE_SHIFT
        for _, ordinal, _, packed in map(_PARAMETER_BODY.unpack_from, bodies)
    }
    return tuple(found[ordinal] for ordinal in sorted(found))


def _attributes(body: bytes) -> Iterator[tuple[int, bytes]]:
    """The kind and bytes of each attribute that has bytes; the others are a word in themselves."""
    at = 0
    while at < len(body):
        form, kind, size = _ATTRIBUTE.unpack_from(body, at)
        at += _ATTRIBUTE.size
        if form == _SIZED:
            yield kind, body[at : at + size]
            at += size


def _device_number(elf: Elf) -> int:
    return (elf.flags >> 8 if elf.abi >= _SHIFTED_ABI else elf.flags) & 0xFF
