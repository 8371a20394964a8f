"""What a model is fed: texts and messages as token ids."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from bedstone.checkpoint.chat import ChatTemplate
from bedstone.checkpoint.tokenizer import Tokenizer
from bedstone.errors import WeightError
from bedstone.serve.http.refusal import bad
from bedstone.serve.http.shapes import Message, TextPart, Tool, ToolCall
from bedstone.serve.text.tools.call import decoded
from bedstone.spec.frozen import Frozen

SHRINK = 4
"""Before a text is cut into tokens it may be normalized, which shrinks it by no more than that."""

NEWER = {"developer": "system", "function": "tool"}
"""What templates know some roles as."""


class Prompt(Frozen):
    """Token ids, and the text they were made from where there was one."""

    ids: Sequence[int]
    text: str = ""


class Prompter:
    """Makes prompts for one model whose sequences hold `context` tokens.

    A completion's text gets what the model puts around one, its `bos` mostly, and special tokens
    spelled in it are text. A chat template spells its special tokens itself. `now` is what it may
    print as today.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        template: ChatTemplate | None,
        context: int,
        now: Callable[[], datetime],
    ) -> None:
        self.template = template
        longest = max((len(tokenizer.piece(each)) for each in range(tokenizer.size)), default=1)
        self._tokenizer = tokenizer
        self._context = context
        self._most = SHRINK * context * max(1, longest)
        self._now = now

    def text(self, text: str) -> Prompt:
        """A completion's prompt.

        Raises `Refusal`: it cannot fit the context. Raises `CallerError`: it is no Unicode.
        """
        self._require_short(text)
        return Prompt(self._tokenizer.encode(text, special=False, whole=True), text)

    def chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> Prompt:
        """A chat's prompt, with the opening of the answer.

        Raises `Refusal`: there is no template, it refuses the messages, or they cannot fit.
        """
        if self.template is None:
            raise bad("this model has no chat template: use `/v1/completions`", "messages")
        try:
            text = self.template.render(
                [plain_message(message) for message in messages],
                now=self._now(),
                tools=[_plain_tool(tool) for tool in tools] or None,
                variables=variables,
            )
        except WeightError as error:
            raise bad(str(error), "messages", "chat_template") from error
        self._require_short(text)
        return Prompt(self._tokenizer.encode(text, special=True), text)

    def _require_short(self, text: str) -> None:
        if len(text) > self._most:
            raise bad(
                f"the prompt has {len(text)} characters: too many for a context of "
                f"{self._context} tokens",
                code="context_length_exceeded",
            )


def plain_message(message: Message) -> dict[str, Any]:
    """A message as templates expect one: text as one string, arguments as an object."""
    role = NEWER.get(message.role, message.role)
    plain: dict[str, Any] = {"role": role, "content": _joined(message)}
    more = {
        "name": message.name,
        "tool_call_id": message.tool_call_id,
        "reasoning_content": message.reasoning_content or message.reasoning,
    }
    plain |= {name: value for name, value in more.items() if value is not None}
    calls = [_plain_call(call) for call in message.tool_calls or ()]
    if message.function_call is not None:
        calls.append(_plain_call(ToolCall(message.function_call)))
    return plain | ({"tool_calls": calls} if calls else {})


def _joined(message: Message) -> str:
    content = message.content
    if isinstance(content, list):
        return "".join(
            part.text if isinstance(part, TextPart) else part.refusal for part in content
        )
    return content or ""


def _plain_call(call: ToolCall) -> dict[str, Any]:
    arguments = call.function.arguments
    if isinstance(arguments, str):
        read = decoded(arguments)
        # a model's broken text is part of the history all the same
        arguments = read if isinstance(read, dict) else {"arguments": arguments}
    function = {"name": call.function.name, "arguments": arguments}
    return {"id": call.id or "", "type": "function", "function": function}


def _plain_tool(tool: Tool) -> dict[str, Any]:
    function = tool.function
    plain: dict[str, Any] = {"name": function.name, "description": function.description or ""}
    plain["parameters"] = function.parameters or {"type": "object", "properties": {}}
    return {"type": "function", "function": plain}
