"""`bedstone run`: compile a checkpoint (or find it compiled), verify it, run it and print text.

Text goes to stdout as it is made; stages, notes and speeds go to stderr.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from bedstone.cli.device import device_target, hardware_device
from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.environment import cache_directory
from bedstone.cli.opened import (
    Wanted,
    open_package,
)
from bedstone.cli.options import (
    ContextOption,
    DeviceOption,
    OpenedArgument,
    PackageNumericsOption,
    TargetOption,
    ThreadsOption,
    WeightsOption,
)
from bedstone.cli.outcome import Answer, Answers, Outcome
from bedstone.cli.picks import TracesOption
from bedstone.cli.progress import Stages
from bedstone.cli.sampling import (
    MinPOption,
    RepetitionOption,
    SeedOption,
    TemperatureOption,
    TopKOption,
    TopPOption,
    require_sampler,
    sampling_of,
)
from bedstone.errors import CallerError, CapacityError, WeightError

if TYPE_CHECKING:
    from bedstone.build.request import Package
    from bedstone.checkpoint.checkpoint import Checkpoint
    from bedstone.runtime.session import Session
    from bedstone.spec.sampling import Sampling


PromptsOption = Annotated[
    list[str],
    typer.Option(
        metavar="TEXT",
        help="The prompt; - reads standard input. Repeat it for up to 64 in one batch.",
    ),
]
ChatOption = Annotated[
    bool | None,
    typer.Option(
        "--chat/--raw", help="Wrap the prompt in the chat template, if there is one, or do not."
    ),
]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be answered: prompts as texts and as ids, since when, and whether aloud.

    `sampling` None takes the likeliest tokens.
    """

    texts: list[str]
    ids: list[list[int]]
    max_tokens: int
    sampling: "Sampling | None"
    began: float
    echo: bool


def command(
    checkpoint: OpenedArgument,
    prompt: PromptsOption,
    chat: ChatOption = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Most tokens to generate.")] = 256,
    temperature: TemperatureOption = None,
    top_k: TopKOption = None,
    top_p: TopPOption = None,
    min_p: MinPOption = None,
    seed: SeedOption = None,
    repetition: RepetitionOption = None,
    numerics: PackageNumericsOption = None,
    threads: ThreadsOption = None,
    target: TargetOption = "auto",
    device: DeviceOption = None,
    context: ContextOption = None,
    traces: TracesOption = None,
    weights: WeightsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a checkpoint on this machine and print what it answers."""
    from bedstone.cli.served import tell_notes
    from bedstone.runtime.load import load

    began = perf_counter()
    sampling = sampling_of(temperature, top_k, top_p, min_p, seed, repetition)
    pinned = device_target(target, device)
    drawn = sampling is not None
    wanted = Wanted(numerics, context, pinned, len(prompt), traces, drawn, weights)
    texts = [sys.stdin.read() if text == "-" else text for text in prompt]
    with Stages() as stages:
        opened, package = open_package(checkpoint, wanted, stages)
        _require_width(len(prompt), package)
        if sampling is not None:
            require_sampler(package)
        template = opened.chat_template
        wrapped = template is not None if chat is None else chat
        ids = [_prompt_ids(opened, text, chat=wrapped) for text in texts]
        _require_room(ids, package)
        session = load(
            package.path,
            device=(device or hardware_device(package.lock.target)).value,
            threads=threads,
            tokens=len(ids) * package.lock.pages(max(map(len, ids)) + max_tokens),
            sequences=len(ids),
            checkpoint=opened,
            cache=cache_directory(),
            progress=stages.step,
        )
    asked = Asked(texts, ids, max_tokens, sampling, began, echo=not as_json)
    with session:
        outcome = (_answer if len(ids) > 1 else _generate)(session, opened, asked)
    tell_notes(opened, package)
    if as_json:
        print_json({**outcome.json(), "package": str(package.path), "stages": stages.seconds})
    else:
        print(outcome.line(), file=sys.stderr)


def _prompt_ids(opened: "Checkpoint", prompt: str, *, chat: bool) -> list[int]:
    """The prompt as the model reads it.

    Raises `CallerError`: a chat was asked for, and the checkpoint has no template; `WeightError`:
    the tokenizer makes tokens that the model has not.
    """
    ids = _encoded(opened, prompt, chat=chat)
    if ids and max(ids) >= opened.config.vocab:
        raise WeightError(
            f"the tokenizer of `{opened.reference}` makes token {max(ids)} of the prompt, the "
            f"model has {opened.config.vocab}"
        )
    return ids


def _encoded(opened: "Checkpoint", prompt: str, *, chat: bool) -> list[int]:
    if not chat:
        return opened.tokenizer.encode(prompt, special=False, whole=True)
    template = opened.chat_template
    if template is None:
        raise CallerError(f"`{opened.reference}` has no chat template: use `--raw`")
    messages = [{"role": "user", "content": prompt}]
    now = datetime.now(UTC).astimezone()
    return opened.tokenizer.encode(template.render(messages, now=now), special=True)


def _require_room(prompts: Sequence[Sequence[int]], package: "Package") -> None:
    """Refuse a prompt no sequence of the package can hold, before weights are touched.

    Raises `CapacityError`: it is too long.
    """
    longest = max(map(len, prompts))
    if longest > package.lock.context:
        raise CapacityError(
            f"the prompt has {longest} tokens, the context holds {package.lock.context}"
        )


def _require_width(prompts: int, package: "Package") -> None:
    """Refuse more prompts than a step decodes: a `CallerError`."""
    if package.lock.sequences < prompts:
        raise CallerError(
            f"`{package.path}` was compiled for {package.lock.sequences} of a step's sequences, "
            f"{prompts} prompts are given: compile it with `--sequences {prompts}`, or run its "
            f"checkpoint `{package.lock.checkpoint}`"
        )


def _generate(session: "Session", opened: "Checkpoint", asked: Asked) -> Outcome:
    """Generate, streaming to stdout where it is aloud; an interrupt ends the text where it is."""
    from bedstone.checkpoint.tokenizer import Detokenizer
    from bedstone.runtime.generate import Generator
    from bedstone.spec.sampling import LIKELIEST

    generator = Generator(session, sampling=asked.sampling or LIKELIEST)
    stream = Detokenizer(opened.tokenizer)
    started = perf_counter()
    tokens: list[int] = []
    pieces: list[str] = []
    first = last = started
    try:
        for token in generator.generate(asked.ids[0], asked.max_tokens, opened.tokenizer.eos):
            last = perf_counter()
            first = first if tokens else last
            tokens.append(token)
            pieces.append(stream.add([token]))
            if asked.echo:
                print(pieces[-1], end="", flush=True)
    finally:
        pieces.append(stream.finish())
        if asked.echo and tokens:
            print(pieces[-1], flush=True)
    return Outcome(
        text="".join(pieces),
        tokens=tokens,
        finish=generator.finish,
        prompt_tokens=len(asked.ids[0]),
        first_seconds=first - asked.began,
        prefill_seconds=first - started,
        decode_seconds=last - first,
        seed=_seed(asked),
    )


def _answer(session: "Session", opened: "Checkpoint", asked: Asked) -> Answers:
    """Answer several prompts together, each as it would be alone; print them where it is aloud."""
    from bedstone.runtime.together import Together

    each = len(asked.ids)
    together = Together(session, each, None if asked.sampling is None else [asked.sampling] * each)
    tokens: list[list[int]] = [[] for _ in asked.ids]
    started = first = perf_counter()
    for index, token in together.generate(asked.ids, asked.max_tokens, opened.tokenizer.eos):
        if not any(tokens):
            first = perf_counter()
        tokens[index].append(token)
    done = perf_counter()
    answers = [
        Answer(text, opened.tokenizer.decode(made), made, finish, len(fed))
        for text, fed, made, finish in zip(
            asked.texts, asked.ids, tokens, together.finish, strict=True
        )
    ]
    if asked.echo:
        print("\n\n".join(f"> {answer.prompt.strip()}\n{answer.text}" for answer in answers))
    return Answers(
        answers,
        first_seconds=first - asked.began,
        prefill_seconds=first - started,
        decode_seconds=done - first,
        seed=_seed(asked),
    )


def _seed(asked: Asked) -> int | None:
    """What the numbers that tokens were drawn by hang on, where any were."""
    return asked.sampling.seed if asked.sampling and asked.sampling.temperature > 0 else None
