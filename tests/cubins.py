"""Machine code of an NVIDIA GPU as its file describes it, without the code."""

import struct

_NAMES = b"\0scale\0other\0device\0"
_SECTIONS = b"\0.note.nv.tkinfo\0"
_ENTRY, _PLAIN = 0x10, 0


def cubin(flags: int, abi: int, note: bytes = b"") -> bytes:
    """Two kernels and a device function, as NVRTC lays them out; `note` is the assembler's."""
    symbols = b"".join(
        struct.pack("<IBBHQQ", name, 0x12, other, 1, 0, 0)
        for name, other in ((1, _ENTRY), (7, _ENTRY), (13, _PLAIN))
    )
    bodies = [(0, 0, b"", 0), (0, 1, b"", 0), (0, 2, symbols, 3), (0, 3, _NAMES, 0),
              (1, 7, note, 0), (0, 3, _SECTIONS, 0)]  # fmt: skip
    data, rows = bytes(64), b""
    for name, kind, body, link in bodies:
        rows += struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, len(data), len(body), link, 0, 1, 0)
        data += body
    identity = b"\x7fELF\x02\x01\x01\x41" + bytes([abi]) + bytes(7)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", identity, 2, 190, 1, 0, 0, len(data), flags, 64, 0, 0, 64,
        len(bodies), len(bodies) - 1,
    )  # fmt: skip
    return header + data[64:] + rows
