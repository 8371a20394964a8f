"""Calls as Hermes and Qwen models write them: `<tool_call>{"name": …}</tool_call>`."""

from bedstone.serve.text.parts import Part, Said, said
from bedstone.serve.text.stops import held
from bedstone.serve.text.tools.call import JsonCall

OPEN, CLOSE = "<tool_call>", "</tool_call>"
MARKERS = (OPEN, CLOSE)


class Hermes:
    """Reads calls between text; white space around a call is nobody's.

    What stands between the tags and is no call is text, tags and all.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._text = ""
        self._space = ""
        self._call: JsonCall | None = None
        self._read = self._outside

    def add(self, text: str) -> list[Part]:
        """The parts that this text settles."""
        self._text += text
        return self._read()

    def finish(self, *, cut: bool) -> list[Part]:  # noqa: ARG002 - as of any reader
        """The parts of what was held back when no text follows."""
        text, self._text = self._text, ""
        if self._call is not None and not self._call.told:
            text = self._space + OPEN + self._call.text + text
        if self._read in {self._skip, self._after} or (self.calls and not text.strip()):
            return []
        return said(text)

    def _outside(self) -> list[Part]:
        before, tag, after = self._text.partition(OPEN)
        if tag:
            settled = before.rstrip()
            self._space = before[len(settled) :]
            self._text = after
            self._begin()
            return said(settled) + self._read()
        kept = len(before) - held(before, (OPEN,))
        settled = before[:kept].rstrip()
        self._text = before[len(settled) :]
        return said(settled)

    def _begin(self) -> None:
        self._call = JsonCall(self.calls)
        self._read = self._inside

    def _inside(self) -> list[Part]:
        call = self._call
        if call is None or not self._text:
            return []
        parts, self._text = call.add(self._text)
        if call.state == "open":
            return parts
        self._call = None
        if call.state == "done":
            self.calls += 1
            self._read = self._after
        elif call.told:
            self._read = self._skip
        else:
            self._text = call.text + self._text
            self._read = self._outside
            return [Said(self._space + OPEN), *self._read()]
        return parts + self._read()

    def _after(self) -> list[Part]:
        """Between a call's end and its closing tag, which may be missing."""
        self._text = self._text.lstrip()
        if not self._text or (CLOSE.startswith(self._text) and self._text != CLOSE):
            return []
        if self._text.startswith("{"):
            self._space = ""
            self._begin()
        else:
            self._text = self._text.removeprefix(CLOSE).lstrip()
            self._read = self._gap
        return self._read()

    def _gap(self) -> list[Part]:
        self._text = self._text.lstrip()
        if self._text:
            self._read = self._outside
            return self._read()
        return []

    def _skip(self) -> list[Part]:
        """What follows a call that broke off, up to its closing tag."""
        _, tag, after = self._text.partition(CLOSE)
        if not tag:
            self._text = self._text[len(self._text) - held(self._text, (CLOSE,)) :]
            return []
        self._text = after
        self._read = self._gap
        return self._read()
