"""Device code inside a host shared object, and what form a module's bytes have. Pure.

`nvcc` puts device code into a section of the host's object: one or more *containers*, each of which
the driver can load by itself. The host half is never loaded, so an extension built against another
library gives its kernels without it. The bytes are untrusted: every offset is checked before it is
used.

    container  u32 magic, u16 version, u16 header bytes, u64 payload bytes, header, payload
    padding    zeros between containers
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from bedstone.errors import KernelError
from bedstone.target.elf import CUDA_MACHINE, MAGIC, named_sections, parse_elf

Form = Literal["cubin", "fatbin", "ptx"]

_FAT_SECTIONS = (".nv_fatbin", "__nv_relfatbin")

_CONTAINER = struct.Struct("<IHHQ")
_CONTAINER_MAGIC = 0xBA55ED50
_NOT_ZERO = re.compile(rb"[^\0]")


@dataclass(frozen=True, slots=True)
class Image:
    """Bytes that the driver loads as one module."""

    form: Form
    data: bytes


def device_images(module: str, data: bytes) -> tuple[Image, ...]:
    """The device code in a module's bytes: a cubin, PTX text, or containers of an object.

    Raises `KernelError`: there is none, or the bytes are cut short.
    """
    try:
        return tuple(_images(module, data))
    except (struct.error, ValueError) as error:
        raise KernelError(f"module `{module}` holds no device code: {error}") from error


def _images(module: str, data: bytes) -> Iterator[Image]:
    if not data.startswith(MAGIC):
        yield from _loose(data)
        return
    if parse_elf(data, module).machine == CUDA_MACHINE:
        yield Image("cubin", data)
        return
    sections = named_sections(data, module)
    found = [name for name in _FAT_SECTIONS if name in sections]
    if not found:
        raise ValueError(f"a host object without a section `{_FAT_SECTIONS[0]}`")
    for body in (sections[name] for name in found):
        yield from (Image("fatbin", container) for container in containers(body))


def _loose(data: bytes) -> Iterator[Image]:
    if data[:4] == _CONTAINER_MAGIC.to_bytes(4, "little"):
        yield from (Image("fatbin", container) for container in containers(data))
    elif b".version" in data:
        yield Image("ptx", data)
    else:
        raise ValueError("expected ELF, a fat binary or PTX text")


def containers(body: bytes) -> Iterator[bytes]:
    """The fat binaries in a section, without the zeros between them.

    Raises `ValueError`: something else lies there, or one is cut short.
    """
    at = found = 0
    while (at := _past_zeros(body, at)) < len(body):
        magic, _, header, payload = _CONTAINER.unpack_from(body, at)
        if magic != _CONTAINER_MAGIC or header < _CONTAINER.size:
            raise ValueError(f"no fat binary at byte {at} of its section")
        end = at + header + payload
        if end > len(body):
            raise ValueError(f"a fat binary of {header + payload} bytes has {len(body) - at}")
        yield body[at:end]
        found, at = found + 1, end
    if not found:
        raise ValueError("an empty fat binary section")


def _past_zeros(body: bytes, at: int) -> int:
    found = _NOT_ZERO.search(body, at)
    return found.start() if found else len(body)
