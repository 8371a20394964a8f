"""What may be asked of an engine, and how that begins. Pure; any thread may ask."""

import math

from bedstone.errors import CallerError
from bedstone.runtime.edits import Edits, edits_anything
from bedstone.serve.engine.abilities import Abilities, lacks
from bedstone.serve.engine.sequence import Sequence
from bedstone.serve.requests import Request, Sampling


def require_possible(able: Abilities, request: Request) -> None:
    """Accept a request that the package can answer.

    Raises `CallerError`: it asks for what cannot be; the message says what may be asked for.
    """
    count = len(request.tokens)
    if not count:
        raise CallerError(f"request `{request.id}`: the prompt is empty, expected a token at least")
    if request.max_tokens < 1:
        raise CallerError(
            f"request `{request.id}`: `max_tokens` is {request.max_tokens}, expected 1 at least"
        )
    if count + request.max_tokens > able.context:
        raise CallerError(
            f"request `{request.id}`: a prompt of {count} tokens and {request.max_tokens} more are "
            f"{count + request.max_tokens}, the context holds {able.context}"
        )
    wrong = next((t for t in request.tokens if not 0 <= t < able.vocab), None)
    if wrong is not None:
        raise CallerError(f"request `{request.id}`: token {wrong}, expected 0 to {able.vocab - 1}")
    missing = lacks(able, request)
    if missing is not None:
        raise CallerError(
            f"request `{request.id}`: `{missing}` needs a sampler, which the package has not: "
            "compile it with `--sampler`"
        )
    problem = _problem(request.sampling, able) or _too_many(request, able)
    if problem is not None:
        raise CallerError(f"request `{request.id}`: {problem}")


def begun(able: Abilities, request: Request, order: int) -> Sequence:
    """The sequence of a possible request, which has not begun."""
    sequence = Sequence.of(request, order)
    sequence.spare = able.stride - 1
    if able.knobs is not None and edits_anything(request.sampling):
        sequence.slow = True
        sequence.edits = edits_of(able, request)
    return sequence


def edits_of(able: Abilities, request: Request) -> Edits:
    """The edits of a request that has made nothing yet."""
    edits = Edits(request.sampling, _most(request, able))
    for token in dict.fromkeys(request.tokens):
        edits.read(int(token))
    return edits


def _problem(sampling: Sampling, able: Abilities) -> str | None:
    """Why a request's tokens cannot be drawn, or None."""
    numbers = {
        "temperature": sampling.temperature,
        "repetition": sampling.repetition,
        "presence": sampling.presence,
        "frequency": sampling.frequency,
        **{f"bias of {token}": bias for token, bias in sampling.bias.items()},
    }
    wrong = [name for name, value in numbers.items() if not math.isfinite(value)]
    if wrong:
        return f"`{wrong[0]}` is {numbers[wrong[0]]}, expected a finite number"
    allowed = (
        ("temperature", sampling.temperature >= 0, "0 at least"),
        ("top_k", sampling.top_k >= -1, "-1 at least"),
        ("top_p", 0 <= sampling.top_p <= 1, "0 to 1"),
        ("min_p", 0 <= sampling.min_p <= 1, "0 to 1"),
        ("repetition", sampling.repetition > 0, "more than 0"),
        ("logprobs", 0 <= (sampling.logprobs or 0) <= able.most_logprobs, able.spelled_logprobs),
        ("bias", all(0 <= token < able.vocab for token in sampling.bias), "tokens there are"),
    )
    return next(
        (
            f"`{name}` is {getattr(sampling, name)}, expected {expected}"
            for name, fine, expected in allowed
            if not fine
        ),
        None,
    )


def _too_many(request: Request, able: Abilities) -> str | None:
    """Why a request would edit more logits than there is room for, or None."""
    sampling = request.sampling
    if not edits_anything(sampling):
        return None
    most = _most(request, able)
    if most <= able.most_edits:
        return None
    return (
        f"penalties and biases may come to edit {most} tokens, the package has room for "
        f"{able.most_edits}: ask for fewer `max_tokens`, or no `repetition` over a long prompt"
    )


def _most(request: Request, able: Abilities) -> int:
    """How many logits a request may come to edit."""
    sampling = request.sampling
    read = request.tokens if sampling.repetition != 1 else ()
    return min(able.vocab, len({*read, *sampling.bias}) + request.max_tokens)
