"""A call made ready: its choices and the requests they take."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from secrets import token_hex

from bedstone.serve.http.choice import Choice
from bedstone.serve.http.forms import Form
from bedstone.serve.http.front import Front
from bedstone.serve.http.prompts import Prompt
from bedstone.serve.http.refusal import bad
from bedstone.serve.http.replies import PromptDetails, Usage
from bedstone.serve.http.sampling import Asked, bounded, sampling, seed_of
from bedstone.serve.http.usual import Turn
from bedstone.serve.link.link import Ask, Guide
from bedstone.serve.requests import Sampling
from bedstone.serve.text.answer import Answer
from bedstone.spec.frozen import Frozen


class Order(Frozen):
    """A call to answer. Choices come prompt by prompt; `takers` are those with a request."""

    id: str
    created: int
    asked: Asked
    prompts: Sequence[Prompt]
    choices: Sequence[Choice]
    asks: Sequence[Ask]
    guide: Guide | None
    takers: Mapping[str, Choice]

    @property
    def counts(self) -> bool:
        """Whether its stream ends with the counts."""
        options = self.asked.stream_options
        return options is not None and options.include_usage

    @property
    def usage(self) -> Usage:
        """Its tokens; those of a prompt count once."""
        each = len(self.choices) // len(self.prompts)
        prompt = sum(len(prompt.ids) for prompt in self.prompts)
        cached = sum(choice.cached for choice in self.choices[::each])
        made = sum(choice.made for choice in self.choices)
        return Usage(prompt, made, prompt + made, PromptDetails(cached))


class Amount(Frozen):
    """How much of an answer is asked for, None as much as fits, and in which turn."""

    most: int | None
    logprobs: int | None
    turn: Turn = "non_thinking"


def ordered(
    front: Front, asked: Asked, prompts: Sequence[Prompt], form: Form, amount: Amount
) -> Order:
    """The call made ready; nothing runs yet.

    Raises `Refusal`: it asks for what cannot be.
    """
    count = asked.n or 1
    _require_places(front, count, len(prompts))
    most = [_room(front, prompt, amount.most) for prompt in prompts]
    usual = front.settings.usual
    drawn = sampling(asked, front.limits, amount.logprobs, usual.preset(amount.turn))
    drawn = bounded(drawn, usual.behavior)
    stops = [asked.stop] if isinstance(asked.stop, str) else asked.stop or []
    guide = front.guide(form)
    itemized = amount.logprobs is not None or bool(asked.return_token_ids)
    name = token_hex(12)
    choices: list[Choice] = []
    asks: list[Ask] = []
    takers: dict[str, Choice] = {}
    for prompt, room in zip(prompts, most, strict=True):
        named: list[tuple[str, Sampling]] = []
        for each in _seeds(drawn, count):
            answer = Answer(
                front.detokenizer(),
                stops,
                form.reader(),
                itemized=itemized,
                one_call=form.one_call,
            )
            choice = Choice(len(choices), prompt, answer)
            choices.append(choice)
            named.append((f"{name}-{choice.index}", each))
        if room:
            stop_ids, seconds = _stop_ids(front, asked), front.settings.deadline_seconds
            asks.append(Ask(prompt.ids, room, named, stop_ids, seconds=seconds))
            takers.update((each, choices[-count + at]) for at, (each, _) in enumerate(named))
    created = int(front.now().timestamp())
    return Order(name, created, asked, prompts, choices, asks, guide, takers)


def _seeds(drawn: Sampling, count: int) -> Iterator[Sampling]:
    for choice in range(count):
        yield replace(drawn, seed=seed_of(drawn.seed, choice))


def _stop_ids(front: Front, asked: Asked) -> frozenset[int]:
    own = () if asked.ignore_eos else front.tokenizer.eos
    return frozenset((*own, *(asked.stop_token_ids or ())))


def _require_places(front: Front, count: int, prompts: int) -> None:
    most = front.limits.sequences + front.limits.queue
    if count * prompts > most:
        field = "n" if count > 1 else "prompt"
        raise bad(f"it takes {count * prompts} sequences, this server holds {most}", field)


def _room(front: Front, prompt: Prompt, most: int | None) -> int:
    """How many tokens to make.

    Raises `Refusal`: the prompt is empty or names no token, or they do not fit the context.
    """
    size, context = len(prompt.ids), front.limits.context
    if not size:
        raise bad("the prompt is empty: expected one token at least", "prompt")
    if max(prompt.ids) >= front.limits.vocab:
        raise bad(f"`prompt`: expected token ids below {front.limits.vocab}", "prompt")
    asked = 1 if most is None else most
    if size + asked > context:
        raise bad(
            f"this model's context holds {context} tokens; the prompt has {size} and {asked} "
            f"more were asked for, {size + asked} together",
            code="context_length_exceeded",
        )
    return context - size if most is None else most
