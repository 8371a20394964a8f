"""What `bedstone run` made of its prompts, and how fast."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import NamedTuple


class Counts(NamedTuple):
    """Tokens of prompts, tokens made, and how many of these came behind a first one."""

    fed: int
    made: int
    following: int


@dataclass(slots=True, kw_only=True)
class Timed(ABC):
    """Times in seconds of a run; `first` counts from the command's start.

    `seed` is what the tokens hang on, None where they are the likeliest.
    """

    first_seconds: float
    prefill_seconds: float
    decode_seconds: float
    seed: int | None = None

    @property
    @abstractmethod
    def counts(self) -> Counts:
        """How many tokens the times are of."""

    @property
    def prefill_rate(self) -> float:
        """Prompt tokens a second."""
        return self.counts.fed / self.prefill_seconds if self.prefill_seconds else 0.0

    @property
    def decode_rate(self) -> float:
        """Tokens a second after the first."""
        return self.counts.following / self.decode_seconds if self.decode_seconds else 0.0

    def json(self) -> dict[str, object]:
        """The JSON object of `--json`."""
        rates = {"prefill_rate": self.prefill_rate, "decode_rate": self.decode_rate}
        return {**asdict(self), **rates}

    def line(self) -> str:
        """The speeds, for a person."""
        seeded = "" if self.seed is None else f" · seed {self.seed}"
        return (
            f"first token {self.first_seconds:.2f} s · prefill {self.counts.fed} tokens at "
            f"{self.prefill_rate:.0f} tok/s · decode {self.counts.made} tokens at "
            f"{self.decode_rate:.1f} tok/s{seeded}"
        )


@dataclass(slots=True)
class Outcome(Timed):
    """What followed one prompt."""

    text: str
    tokens: list[int]
    finish: str | None
    prompt_tokens: int

    @property
    def counts(self) -> Counts:
        """How many tokens the times are of."""
        made = len(self.tokens)
        return Counts(self.prompt_tokens, made, max(made - 1, 0))


@dataclass(slots=True)
class Answer:
    """What followed one of several prompts."""

    prompt: str
    text: str
    tokens: list[int]
    finish: str | None
    prompt_tokens: int


@dataclass(slots=True)
class Answers(Timed):
    """What followed prompts that were answered together."""

    answers: list[Answer]

    @property
    def counts(self) -> Counts:
        """How many tokens the times are of, of all prompts."""
        made = [len(answer.tokens) for answer in self.answers]
        fed = sum(answer.prompt_tokens for answer in self.answers)
        return Counts(fed, sum(made), sum(max(each - 1, 0) for each in made))

    def line(self) -> str:
        """The speeds, for a person."""
        return f"{len(self.answers)} answers · {Timed.line(self)}"
