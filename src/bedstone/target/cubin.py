"""The architecture that machine code of an NVIDIA GPU states.

The flags of the file say for which device it is; whether it is of an `a` or `f` kind stands only in
the note that the assembler leaves about how it was called.
"""

import re

from bedstone.target.elf import Elf, named_sections, parse_elf

_TOOL_NOTE = ".note.nv.tkinfo"
_CALLED_FOR = re.compile(rb"-arch[ =](sm_\d+[af]?)(?![0-9a-z])")
_SHIFTED_ABI = 8


def cubin_arch(data: bytes, module: str) -> str:
    """The architecture of a cubin, without a suffix where it does not state one.

    Bytes that are no whole ELF file are a `KernelError`.
    """
    number = _device_number(parse_elf(data, module))
    note = named_sections(data, module).get(_TOOL_NOTE, b"")
    called = [found.decode() for found in _CALLED_FOR.findall(note)]
    # the flags bind: a note that speaks of another device is not believed
    return next((arch for arch in called if arch.rstrip("af") == f"sm_{number}"), f"sm_{number}")


def _device_number(elf: Elf) -> int:
    return (elf.flags >> 8 if elf.abi >= _SHIFTED_ABI else elf.flags) & 0xFF
