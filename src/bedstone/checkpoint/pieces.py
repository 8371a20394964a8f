"""What each token stands for in bytes, so that text can be put together at any place.

Two kinds of vocabulary are known. In a *byte-level* one each character of a token is a byte in
disguise; in a *sentence-piece* one tokens are text with `▁` for a space, and `<0xNN>` for a byte.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from bedstone.errors import WeightError

SPACE = "▁"
BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def byte_characters() -> dict[str, int]:
    """The byte each character of a byte-level vocabulary stands for.

    Printable Latin-1 characters stand for themselves, the other bytes, in order, for the characters
    from U+0100 on. Source: the GPT-2 vocabulary.
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in set(plain)]
    shifted = {chr(0x100 + place): byte for place, byte in enumerate(rest)}
    return {chr(byte): byte for byte in plain} | shifted


BYTE_OF = byte_characters()


@dataclass(frozen=True, slots=True)
class ByteLevel:
    """Tokens of disguised bytes; a character outside the table stands for its own UTF-8."""

    strip_first: bool = False

    def piece(self, token: str) -> bytes:
        """The bytes of a token."""
        return b"".join(
            bytes((BYTE_OF[c],)) if c in BYTE_OF else c.encode("utf-8", "replace") for c in token
        )


@dataclass(frozen=True, slots=True)
class SentencePiece:
    """Tokens of text with `▁` for a space; `strip_first` drops a space at the start of a text."""

    strip_first: bool

    def piece(self, token: str) -> bytes:
        """The bytes of a token."""
        byte = BYTE_TOKEN.fullmatch(token)
        if byte:
            return bytes.fromhex(byte[1])
        return token.replace(SPACE, " ").encode("utf-8", "replace")


Pieces = ByteLevel | SentencePiece


def parse_decoder(state: bytes | None) -> Pieces:
    """The kind of vocabulary that a `decoder` of a `tokenizer.json` belongs to.

    Raises `WeightError` where it is neither of the two known kinds.
    """
    decoder: dict[str, Any] = json.loads(state) if state else {}
    steps = decoder.get("decoders", [decoder])
    kinds = [step.get("type") for step in steps]
    if kinds == ["ByteLevel"]:
        return ByteLevel()
    if kinds == ["Metaspace"] and steps[0].get("replacement") == SPACE:
        return SentencePiece(strip_first=steps[0].get("prepend_scheme") != "never")
    replace = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    known = [replace, {"type": "ByteFallback"}, {"type": "Fuse"}]
    if steps in (known, [*known, strip]):
        return SentencePiece(strip_first=steps[-1] == strip)
    raise WeightError(f"the tokenizer's decoder {kinds} is not known")
