"""The id that every stage of one cut carries."""

from collections.abc import Iterable

_OFFSET = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_MASK = 2**64 - 1


def cut_id(serialized: bytes, at: Iterable[int]) -> str:
    """FNV-1a 64 of the serialized manifest and each cut point as u64, as 16 hex digits."""
    points = b"".join(point.to_bytes(8, "little") for point in at)
    value = _OFFSET
    for byte in serialized + points:
        value = ((value ^ byte) * _PRIME) & _MASK
    return f"{value:016x}"
