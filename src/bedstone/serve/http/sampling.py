"""How a request's tokens are drawn, from what its client sent."""

from collections.abc import Mapping
from dataclasses import replace
from secrets import randbits

from bedstone.serve.http.refusal import bad
from bedstone.serve.http.shapes import ChatRequest, CompletionRequest
from bedstone.serve.requests import Limits, Sampling
from bedstone.spec.target import Behavior, Preset

Asked = ChatRequest | CompletionRequest

FIELDS: Mapping[str, str] = {
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repetition": "repetition_penalty",
    "presence": "presence_penalty",
    "frequency": "frequency_penalty",
    "bias": "logit_bias",
    "logprobs": "logprobs",
}
"""A field of `Sampling` and what clients call it."""

DRAWN = frozenset({"top_k", "top_p", "min_p"})
"""These change nothing at temperature 0."""

MASK = 2**64 - 1
SEED_BITS = 63


def sampling(asked: Asked, limits: Limits, logprobs: int | None, usual: Preset) -> Sampling:
    """The `Sampling` of a request's first choice. Without a seed it gets a fresh one.

    `usual` is what holds where the request does not say.

    Raises `Refusal`: it asks for what the package has no input for, or biases no token.
    """
    if "temperature" in limits.missing:
        usual = Preset(temperature=0)
    made = Sampling(
        temperature=_or(asked.temperature, usual.temperature),
        top_k=max(0, usual.top_k if asked.top_k is None else asked.top_k),
        top_p=_or(asked.top_p, usual.top_p),
        min_p=_or(asked.min_p, usual.min_p or 0.0),
        seed=randbits(SEED_BITS) if asked.seed is None else asked.seed & MASK,
        repetition=_or(asked.repetition_penalty, usual.repetition_penalty),
        presence=_or(asked.presence_penalty, usual.presence_penalty),
        frequency=_or(asked.frequency_penalty, usual.frequency_penalty),
        bias=_biases(asked.logit_bias or {}, limits.vocab),
        logprobs=logprobs,
    )
    _require_offered(made, limits)
    return made


def bounded(drawn: Sampling, behavior: Behavior) -> Sampling:
    """The same within the bounds that the model's record sets."""
    most = drawn.temperature if behavior.temperature_max is None else behavior.temperature_max
    return replace(
        drawn,
        temperature=min(drawn.temperature, most),
        min_p=max(drawn.min_p, behavior.min_p_floor),
    )


def seed_of(seed: int, choice: int) -> int:
    """The seed of one of several choices; the first has the request's own.

    A step of splitmix64, so that neighbouring seeds share no choices.
    """
    if choice == 0:
        return seed
    mixed = (seed + choice * 0x9E3779B97F4A7C15) & MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
    return mixed ^ (mixed >> 31)


def _or(value: float | None, usual: float) -> float:
    return usual if value is None else value


def _biases(given: Mapping[str, float], vocab: int) -> dict[int, float]:
    biases = {}
    for token, bias in given.items():
        if not (token.isascii() and token.isdecimal() and int(token[:10]) < vocab):
            raise bad(f"`logit_bias`: `{token[:20]}` is no token id below {vocab}", "logit_bias")
        biases[int(token)] = bias
    return biases


def _require_offered(made: Sampling, limits: Limits) -> None:
    plain = Sampling()
    for name, field in FIELDS.items():
        idle = name in DRAWN and made.temperature == 0
        if name in limits.missing and not idle and getattr(made, name) != getattr(plain, name):
            raise bad(
                f"`{field}`: this package was compiled without a sampler that takes it",
                field,
                "unsupported",
            )
