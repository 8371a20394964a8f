"""The safetensors container: eight bytes of header length, a JSON header, tensor data.

The ranges of the tensors must tile the data exactly: no overlap, no hole, no byte behind the last.
A file that breaks this could be read as two things at once, so it is refused whole.
"""

import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path

from bedstone.checkpoint.json_text import parse_object
from bedstone.checkpoint.regular import open_regular
from bedstone.checkpoint.tensors import TensorInfo, WeightFile
from bedstone.errors import WeightError
from bedstone.spec.dtype import FORMATS, FormatName

HEADER_LIMIT = 100_000_000
MAX_DIMENSIONS = 64
LENGTH = struct.Struct("<Q")
METADATA = "__metadata__"

FORMAT_OF: dict[str, FormatName] = {"F32": "f32", "F16": "f16", "BF16": "bf16"}
"""Element types that are read, by their name in the header."""

FOREIGN_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F64": 64, "C64": 64, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip
"""Bits of the element types that are known and not read; others are taken at their word."""


def read_safetensors(path: Path) -> WeightFile:
    """Read and check the header of the file at `path`.

    Raises `WeightError` where the header is too short, too long, not what the format says, or its
    ranges do not tile the data.
    """
    header, start, size = _read_header(path)
    entries = parse_object(header, str(path))
    _check_metadata(entries.pop(METADATA, {}), path)
    stored = [_parse_entry(path, name, entry) for name, entry in entries.items()]
    _check_tiling(path, stored, size - start)
    readable = {
        s.name: TensorInfo(
            s.name, FORMAT_OF[s.dtype], s.shape, path, start + s.begin, s.end - s.begin
        )
        for s in stored
        if s.dtype in FORMAT_OF
    }
    foreign = {s.name: s.dtype for s in stored if s.dtype not in FORMAT_OF}
    return WeightFile(path, readable, foreign, start, size)


def _read_header(path: Path) -> tuple[bytes, int, int]:
    """The header's bytes, where the data begins, and the file's size."""
    try:
        with open_regular(path) as file:
            size = file.seek(0, 2)
            file.seek(0)
            prefix = file.read(LENGTH.size)
            if len(prefix) < LENGTH.size:
                raise WeightError(f"`{path}` is truncated: {size} bytes hold no header length")
            (length,) = LENGTH.unpack(prefix)
            _check_length(path, length, size)
            return file.read(length), LENGTH.size + length, size
    except OSError as error:
        raise WeightError(f"`{path}` cannot be read: {error.strerror or error}") from error


def _check_length(path: Path, length: int, size: int) -> None:
    if length > size - LENGTH.size:
        raise WeightError(
            f"`{path}` is truncated: its header takes {length} bytes, {size - LENGTH.size} follow"
        )
    if length > HEADER_LIMIT:
        raise WeightError(
            f"`{path}` has a header of {length} bytes, the limit is {HEADER_LIMIT}: "
            "split the checkpoint into shards"
        )


@dataclass(frozen=True, slots=True)
class _Stored:
    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def _check_metadata(metadata: object, path: Path) -> None:
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise WeightError(f"`{path}`: `{METADATA}` is not an object of strings")


def _parse_entry(path: Path, name: str, entry: object) -> _Stored:
    what = f"tensor {name!r} of `{path}`"
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise WeightError(f"{what}: expected an object of dtype, shape and data_offsets")
    dtype, offsets = entry["dtype"], entry["data_offsets"]
    if not isinstance(dtype, str):
        raise WeightError(f"{what} has dtype {dtype!r}, expected a string")
    shape = _sizes(entry["shape"], f"{what}: shape")
    if len(shape) > MAX_DIMENSIONS:
        raise WeightError(f"{what} has {len(shape)} dimensions, at most {MAX_DIMENSIONS} are read")
    pair = _sizes(offsets, f"{what}: data_offsets")
    if len(pair) != 2 or pair[0] > pair[1]:
        raise WeightError(f"{what} has data_offsets {offsets}, expected [begin, end]")
    stored = _Stored(name, dtype, shape, pair[0], pair[1])
    _check_extent(stored, what)
    return stored


def _sizes(value: object, what: str) -> tuple[int, ...]:
    if isinstance(value, list) and all(type(n) is int and 0 <= n < 1 << 64 for n in value):
        return tuple(value)
    raise WeightError(f"{what} is {str(value)[:80]}, expected a list of sizes")


def _check_extent(stored: _Stored, what: str) -> None:
    """Compare the bytes a shape takes with those of its range.

    Python's integers do not overflow; a shape that would elsewhere is refused, since a reader that
    wraps around would take it for a small one.
    """
    if stored.dtype in FORMAT_OF:
        bits = 8 * FORMATS[FORMAT_OF[stored.dtype]].block_bytes
    elif stored.dtype in FOREIGN_BITS:
        bits = FOREIGN_BITS[stored.dtype]
    else:
        return
    total = bits * prod(stored.shape)
    if total >= 1 << 64:
        raise WeightError(f"{what} has shape {list(stored.shape)}: its size overflows 64 bits")
    nbytes, left = divmod(total, 8)
    if left or nbytes != stored.end - stored.begin:
        raise WeightError(
            f"{what} is {stored.dtype} of shape {list(stored.shape)} and takes {nbytes} bytes, "
            f"its data_offsets hold {stored.end - stored.begin}"
        )


def _check_tiling(path: Path, stored: list[_Stored], room: int) -> None:
    end, before = 0, "the start of the data"
    for tensor in sorted(stored, key=lambda s: (s.begin, s.end)):
        what = f"tensor {tensor.name!r} of `{path}`"
        if tensor.begin != end:
            fault = "overlaps" if tensor.begin < end else "leaves a hole behind"
            raise WeightError(f"{what} begins at byte {tensor.begin} and {fault} {before} ({end})")
        end, before = tensor.end, f"tensor {tensor.name!r}"
    if end > room:
        raise WeightError(f"`{path}` is truncated: its tensors take {end} bytes, {room} follow")
    if end < room:
        raise WeightError(f"`{path}` has {room - end} bytes behind its last tensor")
