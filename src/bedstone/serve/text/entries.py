"""A token as an answer tells it: its text, its bytes, how likely it and others were."""

from bedstone.serve.requests import Token
from bedstone.spec.frozen import Frozen


class Entry(Frozen):
    """A token and where in its answer's text it begins, in characters.

    `logprob` is None where none is known: nobody asked, or nothing comes before the token.
    """

    token: int
    offset: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()


def entry(token: Token, offset: int) -> Entry:
    """A token the engine told."""
    return Entry(token.token, offset, token.logprob, token.top)


def token_text(piece: bytes) -> str:
    """A token's bytes as text, U+FFFD for what is no character by itself."""
    return piece.decode(errors="replace")


def token_key(piece: bytes) -> str:
    """A token's bytes as text that tells it from others: in hex where they are no text."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)
