"""What `bedstone run` made of its prompts, and how fast."""

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class Outcome:
    """What a run made, and its times in seconds. `first` counts from the command's start.

    `seed` is what the tokens hang on, None where they are the likeliest.
    """

    text: str
    tokens: list[int]
    finish: str | None
    prompt_tokens: int
    first_seconds: float
    prefill_seconds: float
    decode_seconds: float
    seed: int | None = None

    @property
    def prefill_rate(self) -> float:
        """Prompt tokens a second."""
        return self.prompt_tokens / self.prefill_seconds if self.prefill_seconds else 0.0

    @property
    def decode_rate(self) -> float:
        """Tokens a second after the first."""
        return (len(self.tokens) - 1) / self.decode_seconds if self.decode_seconds else 0.0

    def json(self) -> dict[str, object]:
        """The JSON object of `--json`."""
        return {
            **asdict(self),
            "prefill_rate": self.prefill_rate,
            "decode_rate": self.decode_rate,
        }

    def line(self) -> str:
        """The speeds, for a person."""
        return (
            f"first token {self.first_seconds:.2f} s · prefill {self.prompt_tokens} tokens at "
            f"{self.prefill_rate:.0f} tok/s · decode {len(self.tokens)} tokens at "
            f"{self.decode_rate:.1f} tok/s{_seeded(self.seed)}"
        )


@dataclass(slots=True)
class Answer:
    """What followed one of several prompts."""

    prompt: str
    text: str
    tokens: list[int]
    finish: str | None
    prompt_tokens: int


@dataclass(slots=True)
class Answers:
    """What followed prompts that were answered together; times as of `Outcome`, of all of them."""

    answers: list[Answer]
    first_seconds: float
    prefill_seconds: float
    decode_seconds: float
    seed: int | None = None

    @property
    def prefill_rate(self) -> float:
        """Prompt tokens a second."""
        fed = sum(answer.prompt_tokens for answer in self.answers)
        return fed / self.prefill_seconds if self.prefill_seconds else 0.0

    @property
    def decode_rate(self) -> float:
        """Tokens a second after the first of each."""
        made = sum(max(len(answer.tokens) - 1, 0) for answer in self.answers)
        return made / self.decode_seconds if self.decode_seconds else 0.0

    def json(self) -> dict[str, object]:
        """The JSON object of `--json`."""
        return {
            **asdict(self),
            "prefill_rate": self.prefill_rate,
            "decode_rate": self.decode_rate,
        }

    def line(self) -> str:
        """The speeds, for a person."""
        fed = sum(answer.prompt_tokens for answer in self.answers)
        made = sum(len(answer.tokens) for answer in self.answers)
        return (
            f"{len(self.answers)} answers · first token {self.first_seconds:.2f} s · "
            f"prefill {fed} tokens at {self.prefill_rate:.0f} tok/s · decode {made} tokens at "
            f"{self.decode_rate:.1f} tok/s{_seeded(self.seed)}"
        )


def _seeded(seed: int | None) -> str:
    return "" if seed is None else f" · seed {seed}"
