"""What a model thinks, told apart from what it says."""

from bedstone.serve.text.parts import Part, Reader, Thought
from bedstone.serve.text.stops import held

OPEN, CLOSE = "<think>", "</think>"
MARKERS = (OPEN, CLOSE)


class Reasoning:
    """Splits `<think>…</think>` at the head of an answer from what `inner` reads after it.

    `thinking` where the prompt has opened it. White space around the thought is neither's.
    """

    def __init__(self, inner: Reader, *, thinking: bool) -> None:
        self._inner = inner
        self._text = ""
        self._begun = False
        self._read = self._thought if thinking else self._head

    @property
    def calls(self) -> int:
        """How many calls are whole."""
        return self._inner.calls

    def add(self, text: str) -> list[Part]:
        """The parts that this text settles."""
        self._text += text
        return self._read()

    def finish(self, *, cut: bool) -> list[Part]:
        """The parts of what was held back when no text follows."""
        if self._read == self._thought:
            rest = self._text.rstrip() if self._begun else self._text.strip()
            return [Thought(rest)] if rest else []
        parts = self._inner.add(self._take()) if self._read == self._head else []
        return parts + self._inner.finish(cut=cut)

    def _take(self) -> str:
        taken, self._text = self._text, ""
        return taken

    def _head(self) -> list[Part]:
        text = self._text.lstrip()
        if text.startswith(OPEN):
            self._text = text.removeprefix(OPEN)
            self._read = self._thought
        elif OPEN.startswith(text):
            return []
        else:
            self._read = self._said
        return self._read()

    def _thought(self) -> list[Part]:
        if not self._begun:
            self._text = self._text.lstrip()
        thought, close, rest = self._text.partition(CLOSE)
        if close:
            self._text = rest
            self._read = self._gap
            done: list[Part] = [Thought(thought.rstrip())] if thought.rstrip() else []
            return done + self._read()
        kept = thought[: len(thought) - held(thought, (CLOSE,))].rstrip()
        if not kept:
            return []
        self._begun = True
        self._text = self._text[len(kept) :]
        return [Thought(kept)]

    def _gap(self) -> list[Part]:
        self._text = self._text.lstrip()
        if not self._text:
            return []
        self._read = self._said
        return self._read()

    def _said(self) -> list[Part]:
        return self._inner.add(self._take())


def opens_thought(prompt: str) -> bool:
    """Whether a prompt's text leaves its answer inside a thought."""
    return prompt.rstrip().endswith(OPEN)
