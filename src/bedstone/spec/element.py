"""Element types a Definition may name: those of its three dialects."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["float", "int", "bool", "unknown"]


@dataclass(frozen=True, slots=True)
class Element:
    """One element type.

    `bits` is the size of one value; `values` how many values one stored element holds: two for
    PyTorch's packed four-bit floats.
    """

    name: str
    bits: int
    kind: Kind
    values: int = 1


PLACEHOLDERS = ("unknown", "string", "dtype")
"""What FlashInfer's dumps write where they could not tell: such a tensor cannot be made."""

ELEMENTS: dict[str, Element] = {
    e.name: e
    for e in (
        Element("float64", 64, "float"),
        Element("float32", 32, "float"),
        Element("float16", 16, "float"),
        Element("bfloat16", 16, "float"),
        Element("float8_e4m3fn", 8, "float"),
        Element("float8_e5m2", 8, "float"),
        Element("float8_e8m0fnu", 8, "float"),
        Element("float4_e2m1", 4, "float"),
        Element("float4_e2m1fn_x2", 8, "float", 2),
        Element("int64", 64, "int"),
        Element("int32", 32, "int"),
        Element("int16", 16, "int"),
        Element("int8", 8, "int"),
        Element("uint64", 64, "int"),
        Element("uint32", 32, "int"),
        Element("uint16", 16, "int"),
        Element("uint8", 8, "int"),
        Element("bool", 8, "bool"),
        *(Element(name, 0, "unknown") for name in PLACEHOLDERS),
    )
}

FORMER_NAMES = {"float8_e4m3": "float8_e4m3fn"}
"""Names older revisions used, and today's."""
