"""What a stream of server-sent events tells, read as it arrives. Pure."""

import msgspec

MOST_LINE = 1 << 24
"""Bytes of a line: more is no event of a completion."""

_LAST = b"[DONE]"


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[msgspec.Raw] | None = None

    @property
    def tells(self) -> bool:
        return bool(self.content or self.reasoning_content or self.reasoning or self.tool_calls)


class _Choice(msgspec.Struct):
    text: str | None = None
    delta: _Delta | None = None


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class Usage(msgspec.Struct):
    """What a server counted; None where it did not."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None

    @property
    def cached_tokens(self) -> int | None:
        """Tokens of the prompt that the server had from before."""
        details = self.prompt_tokens_details
        return None if details is None else details.cached_tokens


class _Event(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Usage | None = None
    error: object = None


_DECODER = msgspec.json.Decoder(_Event)


class Stream:
    """When each piece of text came, what the server counted, and what was wrong, if anything.

    All that arrives at once has one time. A stream that just ends, without the closing event, is
    cut.
    """

    __slots__ = ("_fault", "_over", "_rest", "pieces", "usage")

    def __init__(self) -> None:
        self.pieces: list[float] = []
        self.usage = Usage()
        self._rest = b""
        self._over = False
        self._fault: str | None = None

    @property
    def fault(self) -> str | None:
        """What was wrong, of a stream that has ended."""
        return self._fault or (None if self._over else "a stream cut short")

    def take(self, data: bytes, now: float) -> None:
        """Read on, in what came at `now`."""
        # lines may end with \r\n, too: JSON has no use for the \r
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > MOST_LINE:
            self._rest, self._fault = b"", "an event without an end"
        for line in lines:
            if line[:5] == b"data:" and not (self._over or self._fault):
                self._event(line[5:], now)

    def _event(self, text: bytes, now: float) -> None:
        try:
            event = _DECODER.decode(text)
        except msgspec.DecodeError as error:
            # to the decoder it is a list that is cut
            self._over = text.strip() == _LAST
            self._fault = None if self._over else _fault(error)
            return
        if event.error is not None:
            self._fault = "an error in the stream"
        for choice in event.choices or ():
            if choice.text or (choice.delta is not None and choice.delta.tells):
                self.pieces.append(now)
        if event.usage is not None:
            self.usage = event.usage


def _fault(error: msgspec.DecodeError) -> str:
    known = isinstance(error, msgspec.ValidationError)
    return "an event that is no completion's" if known else "no JSON in an event"
