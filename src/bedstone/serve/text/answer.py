"""One answer: tokens in, and out whatever of it is settled."""

from collections import deque
from collections.abc import Collection, Sequence
from typing import Literal

from bedstone.checkpoint.tokenizer import Detokenizer
from bedstone.serve.requests import Reason, Token
from bedstone.serve.text.entries import Entry, entry
from bedstone.serve.text.parts import Arguments, Called, Part, Reader, joined, said
from bedstone.serve.text.stops import StopStrings
from bedstone.spec.frozen import Frozen

Finish = Literal["stop", "length", "tool_calls"]


class Delta(Frozen):
    """More of an answer; the last one has its `finish`.

    `entries` are the tokens whose text is all told by now; none of a stop string is among them.
    """

    parts: tuple[Part, ...] = ()
    entries: tuple[Entry, ...] = ()
    finish: Finish | None = None

    def __bool__(self) -> bool:
        return bool(self.parts or self.entries or self.finish)


class Answer:
    """Puts a request's tokens together; deltas, joined, do not depend on how they were dealt out.

    It is `stopped` by a stop string, or after one call if no more are wanted; `made` counts the
    tokens up to there. Unless it is to be `itemized` there are no entries.
    """

    def __init__(
        self,
        detokenizer: Detokenizer,
        stops: Collection[str],
        reader: Reader,
        *,
        itemized: bool = True,
        one_call: bool = False,
    ) -> None:
        self.made = 0
        self.stopped = False
        self._one_call = one_call
        self._itemized = itemized
        self._detokenizer = detokenizer
        self._stops = StopStrings(stops)
        self._reader = reader
        self._length = 0
        self._told = 0
        self._halves: list[Entry] = []
        self._waiting: deque[tuple[int, Entry]] = deque()

    def follow(self, prompt: Sequence[int]) -> None:
        """Go on from the end of a prompt, of which nothing is told.

        A space that the first token begins with is one between words then, not the encoder's own.
        """
        self._detokenizer.add(prompt)

    def echo(self, prompt: Sequence[Token]) -> Delta:
        """Begin with the prompt; stop strings are not looked for in it."""
        text = ""
        for token in prompt:
            text += self._enter(token)
        self._told += len(text)
        return Delta(tuple(said(text)), self._settled())

    def add(self, token: Token) -> Delta:
        """Go on by a token."""
        if self.stopped:
            return Delta()
        self.made += 1
        parts = self._pass_on(self._stops.add(self._enter(token)))
        if self._stops.stopped:
            parts += self._reader.finish(cut=True)
        elif self._one_call and self._reader.calls:
            parts = [part for part in parts if not _is_later_call(part)]
        else:
            return Delta(tuple(parts), self._settled())
        self.stopped = True
        return Delta(tuple(joined(parts)), self._settled(), self._finish("stop"))

    def finish(self, reason: Reason) -> Delta:
        """The rest when no token follows; one that was stopped has none."""
        if self.stopped:
            return Delta()
        tail = self._stops.add(self._detokenizer.finish()) + self._stops.finish()
        parts = self._pass_on(tail)
        parts += self._reader.finish(cut=reason != "stop")
        if not self._stops.stopped:
            self._told = self._length
            self._place()
        return Delta(tuple(joined(parts)), self._settled(), self._finish(reason))

    def _pass_on(self, text: str) -> list[Part]:
        self._told += len(text)
        return self._reader.add(text) if text else []

    def _enter(self, token: Token) -> str:
        text = self._detokenizer.add((token.token,))
        if not self._itemized:
            return text
        self._halves.append(entry(token, self._length))
        self._length += len(text)
        if text:
            self._place()
        return text

    def _place(self) -> None:
        """Tokens without text of their own belong to the text that comes next."""
        self._waiting.extend((self._length, each) for each in self._halves)
        self._halves.clear()

    def _settled(self) -> tuple[Entry, ...]:
        out = []
        while self._waiting and self._waiting[0][0] <= self._told:
            out.append(self._waiting.popleft()[1])
        return tuple(out)

    def _finish(self, reason: Reason) -> Finish:
        if reason == "length":
            return "length"
        return "tool_calls" if self._reader.calls else "stop"


def _is_later_call(part: Part) -> bool:
    return isinstance(part, Called | Arguments) and part.index > 0
