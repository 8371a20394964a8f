"""What clients ask and when, drawn from a seed before anything is sent. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bedstone.errors import CallerError

_FIRST = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", "br", "pl")
_MIDDLE = ("a", "e", "i", "o", "u", "ea", "ou")
_LAST = ("", "n", "r", "s", "t", "l", "ft", "ck", "m")


@dataclass(frozen=True, slots=True)
class Span:
    """Whole numbers from `least` to `most`, each as likely as the others."""

    least: int
    most: int

    def __str__(self) -> str:
        return f"{self.least}" if self.least == self.most else f"{self.least}-{self.most}"


@dataclass(frozen=True, slots=True)
class Mix:
    """What is asked in all: `requests` prompts of `words`, for `tokens` tokens each.

    The first `shared` words are the same in all of them. `rate` requests arrive a second on
    average, at times of a Poisson process; None: each client asks as soon as it has its answer.
    `ignore_eos`: answers go on past the model's end.
    """

    requests: int
    words: Span
    tokens: Span
    shared: int = 0
    rate: float | None = None
    seed: int = 0
    ignore_eos: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """One request; `at` seconds after the start, None for as soon as a client is free."""

    prompt: str
    max_tokens: int
    at: float | None
    ignore_eos: bool = False


def parse_span(option: str, text: str) -> Span:
    """`64` or `32-512` as a span of whole numbers above 0.

    Raises `CallerError`: it is neither.
    """
    least, dash, most = text.partition("-")
    ends = (least, most if dash else least)
    if not all(end.isascii() and end.isdigit() and len(end) < 10 for end in ends):
        raise CallerError(f"`{option}` is `{text}`: expected a number or two, as in 32-512")
    span = Span(int(ends[0]), int(ends[1]))
    if not 1 <= span.least <= span.most:
        raise CallerError(f"`{option}` is `{text}`: expected 1 at least, the smaller one first")
    return span


def draw_asks(mix: Mix, prompts: Sequence[str] = ()) -> tuple[Ask, ...]:
    """The requests of a mix, by arrival; the same for a seed, whoever is asked.

    Where there are `prompts`, they are asked in an order of the seed's instead of words, each once
    before any comes again.
    """
    rng = np.random.default_rng(mix.seed)
    opening = [_word(rng) for _ in range(mix.shared)]
    lengths = rng.integers(mix.words.least, mix.words.most, mix.requests, endpoint=True)
    answers = rng.integers(mix.tokens.least, mix.tokens.most, mix.requests, endpoint=True)
    times = None if mix.rate is None else np.cumsum(rng.exponential(1 / mix.rate, mix.requests))
    texts = _drawn(rng, prompts, mix.requests) if prompts else _made(rng, opening, lengths)
    return tuple(
        Ask(text, int(tokens), None if times is None else float(times[at]), mix.ignore_eos)
        for at, (text, tokens) in enumerate(zip(texts, answers, strict=True))
    )


def _made(rng: np.random.Generator, opening: list[str], lengths: Iterable[int]) -> list[str]:
    """Prompts that begin with `opening`, of so many words each."""
    return [
        " ".join([*opening, *(_word(rng) for _ in range(max(1, int(words) - len(opening))))])
        for words in lengths
    ]


def _drawn(rng: np.random.Generator, prompts: Sequence[str], count: int) -> list[str]:
    """So many of the prompts."""
    rounds = -(-count // len(prompts))
    order = [at for _ in range(rounds) for at in rng.permutation(len(prompts))]
    return [prompts[at] for at in order[:count]]


def _word(rng: np.random.Generator) -> str:
    """One to three syllables."""
    return "".join(
        _FIRST[rng.integers(len(_FIRST))]
        + _MIDDLE[rng.integers(len(_MIDDLE))]
        + _LAST[rng.integers(len(_LAST))]
        for _ in range(rng.integers(1, 4))
    )
