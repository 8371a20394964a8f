"""The GGUF container: checked header, metadata decoded when asked, tensor infos.

A GGUF file is magic, version, two counts, metadata pairs, tensor infos, padding and tensor data,
all little-endian. Every count, length and offset is checked against the file before it is used, so
a truncated or hostile file ends in one `WeightError`. Arrays, which hold the vocabulary, are
stepped over and decoded only when somebody asks for them.
"""

import mmap
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bedstone.checkpoint.tensors import TensorInfo, WeightFile, read_map
from bedstone.errors import WeightError
from bedstone.spec.dtype import FormatName
from bedstone.spec.frozen import Frozen

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
NESTING_LIMIT = 4
MAX_DIMENSIONS = 4
STRING, ARRAY, BOOL = 8, 9, 7

SCALARS: dict[int, struct.Struct] = {
    code: struct.Struct("<" + letter)
    for code, letter in {
        0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i",
        6: "f", BOOL: "B", 10: "Q", 11: "q", 12: "d",
    }.items()
}  # fmt: skip
"""Metadata types of fixed size, by their number in the file."""

U32, U64 = SCALARS[4], SCALARS[10]

PAIR_BYTES = 8 + 4 + 1
INFO_BYTES = 8 + 4 + 4 + 8
"""The least bytes a metadata pair and a tensor info take; they bound the counts."""


class GgmlType(Frozen):
    """How a tensor type stores a row: `block` values in `nbytes`; `format` where it is read."""

    name: str
    block: int
    nbytes: int
    format: FormatName | None = None


GGML_TYPES: dict[int, GgmlType] = {
    0: GgmlType("F32", 1, 4, "f32"),
    1: GgmlType("F16", 1, 2, "f16"),
    2: GgmlType("Q4_0", 32, 18, "q4_0"),
    3: GgmlType("Q4_1", 32, 20, "q4_1"),
    6: GgmlType("Q5_0", 32, 22),
    7: GgmlType("Q5_1", 32, 24),
    8: GgmlType("Q8_0", 32, 34, "q8_0"),
    9: GgmlType("Q8_1", 32, 40),
    10: GgmlType("Q2_K", 256, 84),
    11: GgmlType("Q3_K", 256, 110),
    12: GgmlType("Q4_K", 256, 144, "q4_k"),
    13: GgmlType("Q5_K", 256, 176),
    14: GgmlType("Q6_K", 256, 210, "q6_k"),
    15: GgmlType("Q8_K", 256, 292),
    16: GgmlType("IQ2_XXS", 256, 66),
    17: GgmlType("IQ2_XS", 256, 74),
    18: GgmlType("IQ3_XXS", 256, 98),
    19: GgmlType("IQ1_S", 256, 50),
    20: GgmlType("IQ4_NL", 32, 18),
    21: GgmlType("IQ3_S", 256, 110),
    22: GgmlType("IQ2_S", 256, 82),
    23: GgmlType("IQ4_XS", 256, 136),
    24: GgmlType("I8", 1, 1),
    25: GgmlType("I16", 1, 2),
    26: GgmlType("I32", 1, 4),
    27: GgmlType("I64", 1, 8),
    28: GgmlType("F64", 1, 8),
    29: GgmlType("IQ1_M", 256, 56),
    30: GgmlType("BF16", 1, 2, "bf16"),
    34: GgmlType("TQ1_0", 256, 54),
    35: GgmlType("TQ2_0", 256, 66),
    39: GgmlType("MXFP4", 32, 17),
}


class MetadataArray(Frozen):
    """An array of `count` elements of type `code` that lies at byte `start` of the mapped file."""

    code: int
    count: int
    start: int
    source: "Cursor"

    def strings(self) -> list[str]:
        """The elements of an array of strings."""
        if self.code != STRING:
            raise WeightError(f"`{self.source.path}`: expected an array of strings")
        return self.source.at(self.start).texts(self.count)

    def numbers(self) -> NDArray[np.generic]:
        """The elements of an array of numbers [count]."""
        if self.code not in SCALARS:
            raise WeightError(f"`{self.source.path}`: expected an array of numbers")
        letter = SCALARS[self.code].format
        return np.frombuffer(self.source.buffer, letter, self.count, self.start)


Metadata = Mapping[str, object]
"""Keys to bool, int, float, str or `MetadataArray`."""


class Cursor(Struct):
    """A place in the mapped file that moves as values are read, never past the end."""

    buffer: mmap.mmap
    path: Path
    size: int
    place: int = 0

    def at(self, place: int) -> "Cursor":
        """Another cursor over the same file."""
        return Cursor(self.buffer, self.path, self.size, place)

    def step(self, nbytes: int, what: str) -> int:
        """Move over `nbytes` and say where they begin."""
        start = self.place
        if nbytes > self.size - start:
            raise WeightError(
                f"`{self.path}` is truncated: {what} at byte {start} takes {nbytes} bytes, "
                f"the file has {self.size}"
            )
        self.place = start + nbytes
        return start

    def number(self, form: struct.Struct, what: str) -> int | float:
        """A number of fixed size."""
        value: int | float = form.unpack_from(self.buffer, self.step(form.size, what))[0]
        return value

    def count(self, form: struct.Struct, what: str) -> int:
        """An unsigned integer."""
        return int(self.number(form, what))

    def text(self, what: str) -> str:
        """A string with its length before it."""
        length = self.count(U64, what)
        start = self.step(length, what)
        try:
            return self.buffer[start : start + length].decode()
        except UnicodeDecodeError as error:
            raise self.refused(f"{what} at byte {start} is not UTF-8") from error

    def texts(self, count: int) -> list[str]:
        """As many strings; `skip_texts` went over them before, so they lie inside the file."""
        place, buffer, read = self.place, self.buffer, U64.unpack_from
        found = []
        for _ in range(count):
            start = place + U64.size
            place = start + read(buffer, place)[0]
            found.append(buffer[start:place])
        try:
            return [raw.decode() for raw in found]
        except UnicodeDecodeError as error:
            raise self.refused(f"a string behind byte {self.place} is not UTF-8") from error

    def skip_texts(self, count: int, what: str) -> None:
        """Move over `count` strings without decoding them."""
        place, buffer, read = self.place, self.buffer, U64.unpack_from
        try:
            for _ in range(count):
                place += 8 + read(buffer, place)[0]
        except (struct.error, OverflowError):  # a length lies outside of the file
            place = self.size + 1
        self.step(place - self.place if place <= self.size else self.size, what)

    def refused(self, reason: str) -> WeightError:
        """The error of this file."""
        return WeightError(f"`{self.path}` is not a usable GGUF file: {reason}")


class GgufFile(Frozen):
    """A GGUF file's metadata and its tensors."""

    metadata: Metadata
    weights: WeightFile


def read_gguf(path: Path) -> GgufFile:
    """Read and check the header of the GGUF file at `path`.

    Raises `WeightError` where the file is truncated, inconsistent, big-endian or of another
    version.
    """
    buffer = read_map(path)
    cursor = Cursor(buffer, path, len(buffer))
    _check_magic(cursor)
    tensor_count = cursor.count(U64, "the tensor count")
    pair_count = cursor.count(U64, "the metadata count")
    _check_count(cursor, "metadata pairs", pair_count, PAIR_BYTES)
    metadata = _read_metadata(cursor, pair_count)
    _check_count(cursor, "tensors", tensor_count, INFO_BYTES)
    stored = [_read_info(cursor) for _ in range(tensor_count)]
    alignment = _alignment(cursor, metadata)
    start = -(-cursor.place // alignment) * alignment
    return GgufFile(metadata, _place(cursor, stored, start, alignment))


class _Stored(Frozen):
    name: str
    type: GgmlType
    shape: tuple[int, ...]
    offset: int
    nbytes: int


def _check_magic(cursor: Cursor) -> None:
    start = cursor.step(4, "the magic")
    magic = cursor.buffer[start : start + 4]
    if magic != MAGIC:
        raise cursor.refused(f"it begins with {magic!r}, expected {MAGIC!r}")
    version = cursor.count(U32, "the version")
    if version & 0xFFFF == 0:
        raise cursor.refused("it is big-endian; only little-endian files are read")
    if version not in VERSIONS:
        raise cursor.refused(f"it is version {version}; versions 2 and 3 are read")


def _check_count(cursor: Cursor, what: str, count: int, least: int) -> None:
    room = (cursor.size - cursor.place) // least
    if count > room:
        raise WeightError(
            f"`{cursor.path}` is truncated: it declares {count} {what}, its {cursor.size} bytes "
            f"hold {room} at most"
        )


def _read_metadata(cursor: Cursor, count: int) -> dict[str, object]:
    metadata: dict[str, object] = {}
    for _ in range(count):
        key = cursor.text("a metadata key")
        if key in metadata:
            raise cursor.refused(f"metadata key `{key}` appears twice")
        code = cursor.count(U32, f"the type of `{key}`")
        metadata[key] = _read_value(cursor, code, f"metadata `{key}`")
    return metadata


def _read_value(cursor: Cursor, code: int, what: str) -> object:
    if code == STRING:
        return cursor.text(what)
    if code == ARRAY:
        return _read_array(cursor, what, 1)
    if code not in SCALARS:
        raise cursor.refused(f"{what} has type {code}, which is not known")
    value = cursor.number(SCALARS[code], what)
    if code != BOOL:
        return value
    if value not in (0, 1):
        raise cursor.refused(f"{what} is a boolean of value {value}")
    return bool(value)


def _read_array(cursor: Cursor, what: str, depth: int) -> MetadataArray:
    code = cursor.count(U32, what)
    count = cursor.count(U64, what)
    array = MetadataArray(code, count, cursor.place, cursor)
    if code in SCALARS:
        cursor.step(count * SCALARS[code].size, what)
    elif code == STRING:
        _check_count(cursor, f"strings in {what}", count, U64.size)
        cursor.skip_texts(count, what)
    elif code == ARRAY and depth < NESTING_LIMIT:
        _check_count(cursor, f"arrays in {what}", count, U32.size + U64.size)
        for _ in range(count):
            _read_array(cursor, what, depth + 1)
    else:
        reason = "are nested too deeply" if code == ARRAY else f"have type {code}, not known"
        raise cursor.refused(f"the elements of {what} {reason}")
    return array


def _read_info(cursor: Cursor) -> _Stored:
    name = cursor.text("a tensor name")
    what = f"tensor `{name}`"
    dimensions = cursor.count(U32, what)
    if not 0 < dimensions <= MAX_DIMENSIONS:
        raise cursor.refused(f"{what} has {dimensions} dimensions, expected 1 to {MAX_DIMENSIONS}")
    # The file lists the innermost dimension first.
    shape = tuple(cursor.count(U64, what) for _ in range(dimensions))[::-1]
    code = cursor.count(U32, what)
    offset = cursor.count(U64, what)
    kind = GGML_TYPES.get(code)
    if kind is None:
        raise cursor.refused(f"{what} has element type {code}, which is not known")
    if shape[-1] % kind.block:
        raise cursor.refused(
            f"{what} has rows of {shape[-1]} values, {kind.name} takes blocks of {kind.block}"
        )
    nbytes = kind.nbytes
    for extent in (*shape[:-1], shape[-1] // kind.block):
        nbytes *= extent
    return _Stored(name, kind, shape, offset, nbytes)


def _alignment(cursor: Cursor, metadata: Metadata) -> int:
    value = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if not isinstance(value, int) or value < 1 or value & (value - 1):
        raise cursor.refused(f"metadata `general.alignment` is {value!r}, expected a power of two")
    return value


def _place(cursor: Cursor, stored: list[_Stored], start: int, alignment: int) -> WeightFile:
    """Check that tensors lie inside the file, aligned and apart, and name them."""
    tensors: dict[str, TensorInfo] = {}
    foreign: dict[str, str] = {}
    end = 0
    for tensor in sorted(stored, key=lambda t: (t.offset, t.nbytes)):
        _check_place(cursor, tensor, end, alignment, cursor.size - start)
        if tensor.name in tensors or tensor.name in foreign:
            raise cursor.refused(f"tensor `{tensor.name}` appears twice")
        end = tensor.offset + tensor.nbytes
        if tensor.type.format is None:
            foreign[tensor.name] = tensor.type.name
        else:
            tensors[tensor.name] = TensorInfo(
                tensor.name, tensor.type.format, tensor.shape, cursor.path,
                start + tensor.offset, tensor.nbytes,
            )  # fmt: skip
    return WeightFile(cursor.path, tensors, foreign, min(start, cursor.size), cursor.size)


def _check_place(cursor: Cursor, tensor: _Stored, end: int, alignment: int, room: int) -> None:
    what = f"tensor `{tensor.name}`"
    if tensor.offset % alignment:
        raise cursor.refused(
            f"{what} lies at offset {tensor.offset}, not a multiple of {alignment}"
        )
    if tensor.offset < end:
        raise cursor.refused(f"{what} at offset {tensor.offset} overlaps the tensor before it")
    if tensor.offset + tensor.nbytes > room:
        raise WeightError(
            f"`{cursor.path}` is truncated: {what} ends at byte {tensor.offset + tensor.nbytes} "
            f"of the data, the file has {max(room, 0)}"
        )
