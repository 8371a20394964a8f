"""All that a front's process has to know, as the first message to it."""

from collections.abc import Mapping

import msgspec

from bedstone.checkpoint.chat import ChatTemplate
from bedstone.checkpoint.tokenizer import parse_tokenizer_json
from bedstone.serve.http.front import Voice
from bedstone.serve.http.settings import Settings
from bedstone.serve.requests import Limits
from bedstone.spec.frozen import Frozen


class Opening(Frozen):
    """`tokenizer` is the text of a `tokenizer.json`, `template` a chat template's source.

    `created` is when the server began, in seconds of the day's clock, `age` how long ago.
    """

    settings: Settings
    limits: Limits
    tokenizer: str
    bos: int | None
    eos: tuple[int, ...]
    template: str | None
    tokens: Mapping[str, str]
    created: int
    age: float = 0.0

    @staticmethod
    def of(voice: Voice, settings: Settings, limits: Limits, created: int) -> "Opening":
        """What a front has to know that is to speak so.

        Raises `WeightError`: the tokenizer cannot be written down.
        """
        template = voice.template
        return Opening(
            settings,
            limits,
            voice.tokenizer.to_json(),
            voice.tokenizer.bos,
            voice.tokenizer.eos,
            None if template is None else template.source,
            {} if template is None else template.tokens,
            created,
        )

    @property
    def voice(self) -> Voice:
        """How the model reads and writes."""
        tokenizer = parse_tokenizer_json(self.tokenizer, self.bos, self.eos)
        template = None if self.template is None else ChatTemplate(self.template, self.tokens)
        return Voice(tokenizer, template)


def emit_opening(opening: Opening) -> bytes:
    """The message."""
    return msgspec.msgpack.encode(opening)


def parse_opening(message: bytes) -> Opening:
    """The opening in a message."""
    return msgspec.msgpack.decode(message, type=Opening)
