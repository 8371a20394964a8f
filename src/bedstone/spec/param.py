"""Parameter types as the strings a manifest writes: `in buffer<bf16>`, `inout state`, `bytes<128>`.

The reader is laxer than the published pattern: outer white space, more of it after the direction,
and leading zeros or a plus in a byte count pass. `str` of a parameter type is the canonical form.
"""

import re
from typing import get_args

from bedstone.spec.dtype import DType
from bedstone.spec.fault import shown
from bedstone.spec.manifest import (
    BufferParam,
    BytesParam,
    Direction,
    ParamType,
    ScalarParam,
    ScalarType,
    StateParam,
)

# Unicode White_Space; `str.strip` alone would also drop U+001C to U+001F.
_BLANK = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_BYTES = re.compile(r"bytes<\+?0*([1-9][0-9]{0,9})>")
_BUFFER = re.compile(r"buffer<(.*)>", re.DOTALL)

_SCALAR_BYTES: dict[ScalarType, int] = {"i32": 4, "i64": 8, "f32": 4, "u8": 1}

SCALARS: dict[str, ScalarType] = {name: name for name in get_args(ScalarType)}
DIRECTIONS: dict[str, Direction] = {name: name for name in get_args(Direction)}
DTYPES: dict[str, DType] = {name: name for name in get_args(DType)}


def pattern() -> str:
    """The published regular expression, which knows the canonical spelling only."""
    scalars, directions = "|".join(SCALARS), "|".join(DIRECTIONS)
    return rf"^({scalars}|bytes<[1-9][0-9]*>|({directions}) (state|buffer<({'|'.join(DTYPES)})>))$"


def parse_param(text: str) -> ParamType:
    """The parameter type that `text` spells; a `ValueError` says why it spells none."""
    word = text.strip(_BLANK)
    scalar = SCALARS.get(word)
    if scalar is not None:
        return ScalarParam(scalar)
    if word.startswith("bytes<") and word.endswith(">"):
        return BytesParam(_byte_count(word))
    direction, _, target = word.partition(" ")
    if not target:
        raise ValueError(
            "expected a scalar (`i32`, `i64`, `f32`, `u8`), `bytes<n>`, or a direction and "
            f"`state` or `buffer<dtype>`, found `{shown(word)}`"
        )
    return _pointer(direction, target.strip(_BLANK), word)


def _byte_count(word: str) -> int:
    match = _BYTES.fullmatch(word)
    size = int(match[1]) if match else 0
    if not 0 < size < 2**32:
        raise ValueError(f"expected a byte count from 1 to {2**32 - 1}, found `{shown(word)}`")
    return size


def _pointer(direction: str, target: str, word: str) -> ParamType:
    way = DIRECTIONS.get(direction)
    if way is None:
        raise ValueError(
            f"expected direction `in`, `out` or `inout`, found `{shown(direction)}` in "
            f"`{shown(word)}`"
        )
    if target == "state":
        return StateParam(way)
    match = _BUFFER.fullmatch(target)
    if match is None:
        raise ValueError(f"expected `state` or `buffer<dtype>`, found `{shown(target)}`")
    dtype = DTYPES.get(match[1])
    if dtype is None:
        raise ValueError(f"unknown dtype `{shown(match[1])}` in `{shown(word)}`")
    return BufferParam(way, dtype)


def param_bytes(param: ParamType) -> int:
    """Bytes a parameter takes when it is passed by value; a pointer takes 8."""
    match param:
        case ScalarParam(type_):
            return _SCALAR_BYTES[type_]
        case BytesParam(size):
            return size
        case _:
            return 8
