"""Text that ends an answer, wherever tokens cut it."""

from collections.abc import Collection, Iterable


def held(text: str, markers: Iterable[str]) -> int:
    """How many of the last characters of `text` may be the beginning of a marker."""
    return max((_overlap(text, marker) for marker in markers), default=0)


def _overlap(text: str, marker: str) -> int:
    for size in range(min(len(text), len(marker) - 1), 0, -1):
        if text.endswith(marker[:size]):
            return size
    return 0


class StopStrings:
    """Passes text on up to the first stop string; none of it, not even a part, is passed on.

    First is the one that is whole first, and of those that end together the longest: so a reader
    that sees a character at a time decides, and cuts change nothing.
    """

    def __init__(self, stops: Collection[str]) -> None:
        self._stops = tuple(stops)
        self._text = ""
        self.stopped = False

    def add(self, text: str) -> str:
        """What of the text so far can be no part of a stop string."""
        if self.stopped:
            return ""
        if not self._stops:
            return text
        self._text += text
        found = min(filter(None, map(self._end, self._stops)), default=None)
        if found is not None:
            self.stopped = True
            return self._take(found[1])
        return self._take(len(self._text) - held(self._text, self._stops))

    def finish(self) -> str:
        """What was held back when no text follows."""
        return "" if self.stopped else self._take(len(self._text))

    def _end(self, stop: str) -> tuple[int, int] | None:
        start = self._text.find(stop)
        return None if start < 0 else (start + len(stop), start)

    def _take(self, size: int) -> str:
        taken, self._text = self._text[:size], self._text[size:]
        return taken
