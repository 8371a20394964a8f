"""`/v1/completions`: texts or token ids in, what follows them out."""

from collections.abc import Sequence
from typing import cast

import msgspec
from msgspec import UNSET, UnsetType

from bedstone.serve.http.choice import Choice
from bedstone.serve.http.forms import completion_form
from bedstone.serve.http.front import Front
from bedstone.serve.http.idle import ALL
from bedstone.serve.http.order import Amount, Order, ordered
from bedstone.serve.http.prompts import Prompt
from bedstone.serve.http.refusal import bad
from bedstone.serve.http.replies import Completion, CompletionChoice, CompletionLogprobs, Usage
from bedstone.serve.http.score import scored
from bedstone.serve.http.shapes import CompletionRequest
from bedstone.serve.http.tell import completion_logprobs, token_ids
from bedstone.serve.requests import Token
from bedstone.serve.text.answer import Delta
from bedstone.serve.text.parts import Said
from bedstone.spec.frozen import Frozen

USUAL = 16
"""Tokens made where nothing says how many, as OpenAI has it; fewer where fewer fit."""
TAIL = 8
"""Tokens at the end of a prompt: more than the bytes of a character."""
LONG = 2048
"""A body of more bytes is encoded by a worker."""


class CompletionEndpoint(Frozen):
    """How completions are ordered and told."""

    front: Front
    decoder: "msgspec.json.Decoder[CompletionRequest]" = msgspec.json.Decoder(CompletionRequest)

    async def order(self, asked: CompletionRequest, size: int) -> Order:
        """The completion made ready; `size` is how many bytes it came in.

        Raises `Refusal`: it asks for what cannot be.
        """
        front = self.front
        given = _given(asked)
        if asked.best_of not in {None, asked.n or 1}:
            raise bad(f"`best_of`: expected `{asked.n or 1}`, as {ALL}", "best_of", "unsupported")

        def prompted() -> list[Prompt]:
            return [
                front.prompter.text(each) if isinstance(each, str) else Prompt(each)
                for each in given
            ]

        prompts = await front.workers.run(prompted) if size > LONG else prompted()
        form = completion_form(asked, front.settings)
        longest = max(len(prompt.ids) for prompt in prompts)
        usual = max(1, min(USUAL, front.limits.context - longest))
        most = usual if asked.max_tokens is None else asked.max_tokens
        return ordered(front, asked, prompts, form, Amount(most, asked.logprobs))

    async def begin(self, order: Order) -> None:
        """Begin each choice with its prompt, where the answer is to, else after it."""
        asked = _completion(order)
        if not asked.echo:
            for choice in order.choices:
                choice.follow(choice.prompt.ids[-TAIL:])
            return
        echoes: Sequence[Sequence[Token]]
        if asked.logprobs is None:
            echoes = [[Token("", token) for token in prompt.ids] for prompt in order.prompts]
        else:
            echoes = await scored(self.front, order, asked.logprobs)
        each = len(order.choices) // len(order.prompts)
        for choice in order.choices:
            choice.echo(echoes[choice.index // each])

    def chunk(self, order: Order, choice: Choice, delta: Delta) -> bytes:
        """An event of the stream."""
        told = self._choice(order, choice, delta, first=not choice.begun)
        return self._reply(order, [told], None if order.counts else UNSET)

    def usage(self, order: Order) -> bytes:
        """The event with the counts."""
        return self._reply(order, [], order.usage)

    def whole(self, order: Order) -> bytes:
        """The answers at once."""
        choices = [
            self._choice(order, choice, choice.take(), first=True) for choice in order.choices
        ]
        return self._reply(order, choices, order.usage)

    def _choice(
        self, order: Order, choice: Choice, delta: Delta, *, first: bool
    ) -> CompletionChoice:
        asked = _completion(order)
        logprobs: CompletionLogprobs | None = None
        if asked.logprobs is not None:
            logprobs = completion_logprobs(self.front.tokenizer, delta.entries)
        return CompletionChoice(
            index=choice.index,
            text="".join(part.text for part in delta.parts if isinstance(part, Said)),
            logprobs=logprobs,
            finish_reason="stop" if delta.finish == "tool_calls" else delta.finish,
            **token_ids(order, choice, delta, first=first),
        )

    def _reply(
        self, order: Order, choices: list[CompletionChoice], usage: Usage | UnsetType | None
    ) -> bytes:
        reply = Completion(
            id=f"cmpl-{order.id}",
            created=order.created,
            model=self.front.settings.model,
            system_fingerprint=self.front.settings.fingerprint,
            choices=choices,
            usage=usage,
        )
        return msgspec.json.encode(reply)


def _completion(order: Order) -> CompletionRequest:
    return cast("CompletionRequest", order.asked)


def _given(asked: CompletionRequest) -> Sequence[str | list[int]]:
    """The prompts, whichever way they were written.

    Raises `Refusal`: the list mixes kinds.
    """
    prompt = asked.prompt
    if isinstance(prompt, str):
        return [prompt]
    kinds = {type(each) for each in prompt}
    if len(kinds) > 1:
        raise bad("`prompt`: expected texts, token ids, or lists of token ids, not a mix", "prompt")
    if kinds == {int}:
        return [cast("list[int]", prompt)]
    return cast("Sequence[str | list[int]]", prompt)
