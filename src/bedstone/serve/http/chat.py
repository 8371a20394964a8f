"""`/v1/chat/completions`: messages in, a message out."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from bedstone.serve.http.choice import Choice
from bedstone.serve.http.forms import chat_form, offered, require_tools_known
from bedstone.serve.http.front import Front
from bedstone.serve.http.order import Amount, Order, ordered
from bedstone.serve.http.prompts import Prompt
from bedstone.serve.http.refusal import bad
from bedstone.serve.http.replies import (
    Chat,
    ChatChoice,
    ChatChunk,
    ChatChunkChoice,
    ChatLogprobs,
    FunctionCall,
    FunctionDelta,
    MessageDelta,
    ReplyMessage,
    ReplyToolCall,
    ToolCallDelta,
    Usage,
)
from bedstone.serve.http.shapes import ChatRequest
from bedstone.serve.http.tell import chat_logprobs, token_ids
from bedstone.serve.http.usual import Turn
from bedstone.serve.text.answer import Delta
from bedstone.serve.text.parts import Arguments, Called, Part, Said, Thought
from bedstone.spec.frozen import Frozen

LONG = 4096
"""A body of more bytes is rendered and encoded by a worker."""


class ChatEndpoint(Frozen):
    """How chats are ordered and told."""

    front: Front
    decoder: "msgspec.json.Decoder[ChatRequest]" = msgspec.json.Decoder(ChatRequest)

    async def order(self, asked: ChatRequest, size: int) -> Order:
        """The chat made ready; `size` is how many bytes it came in.

        Raises `Refusal`: it asks for what cannot be.
        """
        front = self.front
        template = front.prompter.template
        require_tools_known(asked, front.settings, template.source if template else "")
        schemas = offered(asked)
        tools = [tool for tool in asked.tools or () if tool.function.name in schemas]
        variables = front.settings.usual.variables(_variables(asked), tools=bool(tools))
        thinks = front.settings.reasoning and bool(variables["enable_thinking"])
        turn: Turn = "tools" if tools else "thinking_text" if thinks else "non_thinking"
        amount = Amount(_most(asked), _logprobs(asked), turn)

        def prompted() -> Prompt:
            return front.prompter.chat(asked.messages, tools, variables)

        prompt = await front.workers.run(prompted) if size > LONG else prompted()
        form = chat_form(asked, front.settings, prompt.text)
        return ordered(front, asked, [prompt], form, amount)

    async def begin(self, _order: Order) -> None:
        """Nothing comes before the first token."""

    def chunk(self, order: Order, choice: Choice, delta: Delta) -> bytes:
        """An event of the stream."""
        message = _delta(order, choice, delta.parts, first=not choice.begun)
        told = ChatChunkChoice(
            index=choice.index,
            delta=message,
            logprobs=self._logprobs(order, delta),
            finish_reason=delta.finish,
            **token_ids(order, choice, delta, first=not choice.begun),
        )
        return self._chunk(order, [told], None if order.counts else UNSET)

    def usage(self, order: Order) -> bytes:
        """The event with the counts."""
        return self._chunk(order, [], order.usage)

    def whole(self, order: Order) -> bytes:
        """The answer at once."""
        choices = []
        for choice in order.choices:
            delta = choice.take()
            told = ChatChoice(
                index=choice.index,
                message=_message(order, choice, delta.parts),
                logprobs=self._logprobs(order, delta),
                finish_reason=delta.finish or "stop",
                **token_ids(order, choice, delta, first=True),
            )
            choices.append(told)
        reply = Chat(
            id=_name(order),
            created=order.created,
            model=self.front.settings.model,
            system_fingerprint=self.front.settings.fingerprint,
            choices=choices,
            usage=order.usage,
        )
        return msgspec.json.encode(reply)

    def _logprobs(self, order: Order, delta: Delta) -> ChatLogprobs | None:
        if not order.asked.logprobs:
            return None
        return chat_logprobs(self.front.tokenizer, delta.entries)

    def _chunk(
        self, order: Order, choices: list[ChatChunkChoice], usage: Usage | UnsetType | None
    ) -> bytes:
        chunk = ChatChunk(
            id=_name(order),
            created=order.created,
            model=self.front.settings.model,
            system_fingerprint=self.front.settings.fingerprint,
            choices=choices,
            usage=usage,
        )
        return msgspec.json.encode(chunk)


def _name(order: Order) -> str:
    return f"chatcmpl-{order.id}"


def _most(asked: ChatRequest) -> int | None:
    newer = asked.max_completion_tokens
    return asked.max_tokens if newer is None else newer


def _logprobs(asked: ChatRequest) -> int | None:
    if asked.top_logprobs is not None and not asked.logprobs:
        raise bad("`top_logprobs` needs `logprobs` true", "top_logprobs")
    return (asked.top_logprobs or 0) if asked.logprobs else None


def _variables(asked: ChatRequest) -> Mapping[str, Any]:
    switches = {"reasoning_effort": asked.reasoning_effort, "verbosity": asked.verbosity}
    given = {name: value for name, value in switches.items() if value is not None}
    return given | (asked.chat_template_kwargs or {})


def _said(parts: Iterable[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Said))


def _thought(parts: Iterable[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Thought))


def _delta(order: Order, choice: Choice, parts: Sequence[Part], *, first: bool) -> MessageDelta:
    said, thought = _said(parts), _thought(parts)
    calls = _call_deltas(order, choice, parts)
    silent = first and not (thought or calls)
    return MessageDelta(
        role="assistant" if first else UNSET,
        content=said if said or silent else UNSET,
        reasoning_content=thought or UNSET,
        tool_calls=calls or UNSET,
    )


def _call_deltas(order: Order, choice: Choice, parts: Sequence[Part]) -> list[ToolCallDelta]:
    """One for each call that there is more of."""
    names = {part.index: part.name for part in parts if isinstance(part, Called)}
    texts = dict.fromkeys(names, "")
    for part in parts:
        if isinstance(part, Arguments):
            texts[part.index] = texts.get(part.index, "") + part.text
    return [
        ToolCallDelta(
            index=index,
            id=_call_name(order, choice, index) if index in names else UNSET,
            type="function" if index in names else UNSET,
            function=FunctionDelta(texts[index], names.get(index, UNSET)),
        )
        for index in sorted(texts)
    ]


def _message(order: Order, choice: Choice, parts: Sequence[Part]) -> ReplyMessage:
    names = [(part.index, part.name) for part in parts if isinstance(part, Called)]
    texts = [(part.index, part.text) for part in parts if isinstance(part, Arguments)]
    calls = [
        ReplyToolCall(
            id=_call_name(order, choice, index),
            function=FunctionCall(name, "".join(text for at, text in texts if at == index)),
        )
        for index, name in names
    ]
    said, thought = _said(parts), _thought(parts)
    return ReplyMessage(
        content=said or (None if calls or thought else ""),
        reasoning_content=thought or UNSET,
        tool_calls=calls or UNSET,
    )


def _call_name(order: Order, choice: Choice, index: int) -> str:
    return f"call_{order.id}{choice.index:02x}{index:02x}"
