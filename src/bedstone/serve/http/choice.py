"""One choice of an answer: its text so far, and what of it has not been told yet."""

from collections.abc import Sequence

from bedstone.serve.http.prompts import Prompt
from bedstone.serve.requests import Finished, Reason, Token
from bedstone.serve.text.answer import Answer, Delta, Finish
from bedstone.serve.text.parts import joined


class Choice:
    """Takes a request's tokens; `take` hands out what is settled since the last time."""

    def __init__(self, index: int, prompt: Prompt, answer: Answer) -> None:
        self.index = index
        self.prompt = prompt
        self.begun = False
        self.cached = 0
        self.finish: Finish | None = None
        self._answer = answer
        self._untold: list[Delta] = []

    @property
    def made(self) -> int:
        """How many tokens were made, up to where it was stopped."""
        return self._answer.made

    @property
    def over(self) -> bool:
        """Whether it needs no more tokens."""
        return self._answer.stopped

    @property
    def waits(self) -> bool:
        """Whether there is something to tell."""
        return bool(self._untold)

    def follow(self, prompt: Sequence[int]) -> None:
        """Go on from the end of the prompt."""
        self._answer.follow(prompt)

    def echo(self, prompt: Sequence[Token]) -> None:
        """Begin with the prompt."""
        self._add(self._answer.echo(prompt))

    def token(self, token: Token) -> None:
        """Take the next token."""
        self._add(self._answer.add(token))

    def end(self, finished: Finished) -> None:
        """There are no more."""
        self.cached = finished.cached
        self.close(finished.reason)

    def close(self, reason: Reason) -> None:
        """End the text."""
        self._add(self._answer.finish(reason))

    def take(self) -> Delta:
        """What is settled and was not told yet."""
        untold, self._untold = self._untold, []
        if len(untold) == 1:
            return untold[0]
        return Delta(
            tuple(joined(part for delta in untold for part in delta.parts)),
            tuple(entry for delta in untold for entry in delta.entries),
            next((delta.finish for delta in untold if delta.finish), None),
        )

    def _add(self, delta: Delta) -> None:
        self.finish = delta.finish or self.finish
        if delta:
            self._untold.append(delta)
