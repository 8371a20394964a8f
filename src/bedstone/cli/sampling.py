"""Options of how tokens are drawn, and what they ask of a package."""

import secrets
from typing import TYPE_CHECKING, Annotated

import typer

from bedstone.errors import CallerError

if TYPE_CHECKING:
    from bedstone.build.request import Package
    from bedstone.spec.sampling import Sampling

_SEED_BITS = 63

SamplerOption = Annotated[
    bool,
    typer.Option("--sampler", help="Add a sampler; without it steps take the most likely token."),
]
TemperatureOption = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        help="0, the default, takes the most likely token; 1 if another sampling option is given.",
    ),
]
TopKOption = Annotated[
    int | None, typer.Option(help="Sample from the K most likely tokens; 0: all.")
]
TopPOption = Annotated[
    float | None,
    typer.Option(
        min=0.0, max=1.0, help="Sample from the fewest tokens whose probabilities sum to P."
    ),
]
MinPOption = Annotated[
    float | None,
    typer.Option(
        min=0.0, max=1.0, help="Drop tokens below P times the most likely one's probability."
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(help="The same seed gives the same text; by default random, and printed."),
]
RepetitionOption = Annotated[
    float | None,
    typer.Option(
        "--repetition-penalty", min=0.01, help="Above 1: tokens seen before become less likely."
    ),
]


def sampling_of(
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    min_p: float | None,
    seed: int | None,
    repetition: float | None,
) -> "Sampling | None":
    """How tokens are to be drawn; None where nothing is asked, which takes the likeliest."""
    from bedstone.spec.sampling import Sampling

    drawn = (temperature, top_k, top_p, min_p, seed)
    if all(option is None for option in (*drawn, repetition)):
        return None
    # a penalty alone does not make a text random
    usual = 0.0 if all(option is None for option in drawn) else 1.0
    return Sampling(
        temperature=usual if temperature is None else temperature,
        top_k=top_k or 0,
        top_p=1.0 if top_p is None else top_p,
        min_p=min_p or 0.0,
        seed=secrets.randbits(_SEED_BITS) if seed is None else seed,
        repetition=1.0 if repetition is None else repetition,
    )


def require_sampler(package: "Package") -> None:
    """Refuse a package that can only take the likeliest tokens: a `CallerError`."""
    if package.lock.sampling is None:
        raise CallerError(
            f"`{package.path}` takes the likeliest tokens: compile it with `--sampler`, or run its "
            f"checkpoint `{package.lock.checkpoint}`"
        )
