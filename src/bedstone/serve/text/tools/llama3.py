"""Calls as Llama 3 models write them: an answer that is `{"name": …, "parameters": …}`."""

from collections.abc import Collection

from bedstone.serve.text.parts import Part, said
from bedstone.serve.text.tools.call import JsonCall

TAG = "<|python_tag|>"
MARKERS = (TAG,)
BETWEEN = " \t\r\n;,"


class Llama3:
    """Reads an answer that begins with a call of one of `names`, and the calls right after it.

    Any other answer is text.
    """

    def __init__(self, names: Collection[str]) -> None:
        self.calls = 0
        self._names = names
        self._text = ""
        self._raw = ""
        self._call: JsonCall | None = None
        self._read = self._between

    def add(self, text: str) -> list[Part]:
        """The parts that this text settles."""
        self._text += text
        return self._read()

    def finish(self, *, cut: bool) -> list[Part]:  # noqa: ARG002 - as of any reader
        """The parts of what was held back when no text follows."""
        if self._call is not None and self._call.told:
            return []
        text = self._raw + (self._call.text if self._call is not None else "") + self._text
        return said(text) if text.strip(BETWEEN) or not self.calls else []

    def _between(self) -> list[Part]:
        """Before the first call or after one."""
        solid = self._text.lstrip(BETWEEN if self.calls else None)
        if not solid or (TAG.startswith(solid) and solid != TAG):
            return []
        if solid.startswith(TAG):
            solid = solid.removeprefix(TAG).lstrip()
            if not solid:
                return []
        if not solid.startswith("{"):
            self._read = self._plain
            return self._read()
        self._raw = self._text[: len(self._text) - len(solid)]
        self._text = solid
        self._call = JsonCall(self.calls, self._names)
        self._read = self._inside
        return self._read()

    def _inside(self) -> list[Part]:
        call = self._call
        if call is None or not self._text:
            return []
        parts, self._text = call.add(self._text)
        if call.state == "open":
            return parts
        self._call = None
        raw, self._raw = self._raw, ""
        if call.state == "done":
            self.calls += 1
            self._read = self._between
        elif call.told:
            self._read = self._skip
        else:
            self._text = raw + call.text + self._text
            self._read = self._plain
        return parts + self._read()

    def _plain(self) -> list[Part]:
        text, self._text = self._text, ""
        return said(text)

    def _skip(self) -> list[Part]:
        """What follows a call that broke off says nothing."""
        self._text = ""
        return []
