"""Prompts of a data set: a ShareGPT file, or a JSON object a line. Pure."""

import msgspec

from bedstone.errors import CallerError

_PEOPLE = frozenset({"human", "user"})


class _Turn(msgspec.Struct):
    said: str = msgspec.field(default="", name="value")
    who: str = msgspec.field(default="", name="from")


class _Talk(msgspec.Struct):
    conversations: list[_Turn] = []


class _Line(msgspec.Struct):
    prompt: str


def parse_prompts(name: str, text: bytes) -> tuple[str, ...]:
    """The prompts in the file `name`, empty ones left out: each talk's first words, or each line's.

    Raises `CallerError`: it is neither kind of file, or holds none.
    """
    try:
        if text.lstrip()[:1] == b"[":
            found = _openings(msgspec.json.decode(text, type=list[_Talk]))
        else:
            lines = msgspec.json.Decoder(_Line).decode_lines(text)
            found = [line.prompt for line in lines]
    except msgspec.MsgspecError as error:
        raise CallerError(
            f"`{name}` holds no prompts: expected a ShareGPT list, or an object with "
            f"a `prompt` a line: {error}"
        ) from error
    kept = tuple(prompt for prompt in found if prompt.strip())
    if not kept:
        raise CallerError(f"`{name}` holds no prompts: expected one at least")
    return kept


def _openings(talks: list[_Talk]) -> list[str]:
    """What people began with; a talk that something else begins is left out."""
    firsts = (talk.conversations[0] for talk in talks if talk.conversations)
    return [first.said for first in firsts if first.who in _PEOPLE]
