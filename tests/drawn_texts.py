"""Texts as the sampler's model draws them from a session's own logits, fed by hand."""

from collections.abc import Sequence

from bedstone.oracle.draw import Wish, draw
from bedstone.runtime.session import Session
from bedstone.spec.sampling import Sampling
from packages import Fed

SAMPLINGS = (
    Sampling(1.0, seed=1),
    Sampling(0.7, top_k=9, top_p=0.9, min_p=0.01, seed=-3),
    Sampling(1.3, top_p=0.8, seed=2**64 - 1),
)
EDITED = (
    Sampling(repetition=1.7),
    Sampling(1.0, seed=5, repetition=1.3, presence=0.5, frequency=0.25, bias={4: 1.0, 7: -2.5}),
)


def edits(
    sampling: Sampling, prompt: Sequence[int], made: Sequence[int]
) -> list[tuple[int, float, float]]:
    """What a sequence's penalties and biases make of each token they touch."""
    read = prompt if sampling.repetition != 1 else ()
    return [
        (
            one,
            sampling.repetition if one in {*made, *prompt} else 1.0,
            sampling.bias.get(one, 0.0)
            - sampling.presence * (one in made)
            - sampling.frequency * list(made).count(one),
        )
        for one in sorted({*made, *read, *sampling.bias})
    ]


def by_model(session: Session, prompt: Sequence[int], sampling: Sampling, count: int) -> list[int]:
    """The tokens that follow, each drawn in float64 from the logits of its step."""
    sequence, made = Fed(session, (0, 1)), list[int]()
    logits = sequence.feed(prompt)
    for _ in range(count):
        wish = Wish(
            sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p, sampling.seed,
            edits=edits(sampling, prompt, made),
        )  # fmt: skip
        made.append(draw(logits, wish, sequence.length)[0])
        logits = sequence.feed(made[-1:], "decode")
    return made
