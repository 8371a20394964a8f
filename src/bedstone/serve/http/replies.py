"""What a client gets."""

from typing import Literal

from msgspec import UNSET, UnsetType

from bedstone.serve.text.answer import Finish
from bedstone.spec.frozen import Frozen


class PromptDetails(Frozen):
    """How many of the prompt's tokens were not computed again."""

    cached_tokens: int


class Usage(Frozen):
    """Tokens of the prompts, once each, and of the answers: without the one that ended each."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails


class TopLogprob(Frozen):
    """A token that might have come."""

    token: str
    logprob: float
    bytes: list[int]


class TokenLogprob(Frozen):
    """The token that came, and the likeliest."""

    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[TopLogprob]


class ChatLogprobs(Frozen):
    """Each token of an answer."""

    content: list[TokenLogprob]
    refusal: None = None


class CompletionLogprobs(Frozen):
    """The older form: lists of equal length, an item a token; null for a prompt's first."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]


class CompletionChoice(Frozen, kw_only=True):
    """An answer, or in a stream more of it."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None = None
    finish_reason: Literal["stop", "length"] | None = None
    token_ids: list[int] | UnsetType = UNSET
    prompt_token_ids: list[int] | UnsetType = UNSET


class Completion(Frozen, kw_only=True):
    """The answers of `/v1/completions`, and each event of its stream."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    system_fingerprint: str | None = None
    choices: list[CompletionChoice]
    usage: Usage | UnsetType | None = UNSET


class FunctionCall(Frozen):
    """A function's name and the JSON text of its arguments."""

    name: str
    arguments: str


class ReplyToolCall(Frozen, kw_only=True):
    """A call the model makes."""

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class ReplyMessage(Frozen, kw_only=True):
    """What the model says; `content` is null where it only calls or thinks."""

    role: Literal["assistant"] = "assistant"
    content: str | None = None
    refusal: None = None
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[ReplyToolCall] | UnsetType = UNSET


class ChatChoice(Frozen, kw_only=True):
    """An answer."""

    index: int
    message: ReplyMessage
    logprobs: ChatLogprobs | None = None
    finish_reason: Finish
    token_ids: list[int] | UnsetType = UNSET
    prompt_token_ids: list[int] | UnsetType = UNSET


class Chat(Frozen, kw_only=True):
    """The answers of `/v1/chat/completions`."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    system_fingerprint: str | None = None
    choices: list[ChatChoice]
    usage: Usage


class FunctionDelta(Frozen):
    """The name comes once and first."""

    arguments: str
    name: str | UnsetType = UNSET


class ToolCallDelta(Frozen, kw_only=True):
    """More of a call; its id and type come with its name."""

    index: int
    id: str | UnsetType = UNSET
    type: Literal["function"] | UnsetType = UNSET
    function: FunctionDelta


class MessageDelta(Frozen, kw_only=True):
    """More of a message; the role comes once and first."""

    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[ToolCallDelta] | UnsetType = UNSET


class ChatChunkChoice(Frozen, kw_only=True):
    """More of an answer."""

    index: int
    delta: MessageDelta
    logprobs: ChatLogprobs | None = None
    finish_reason: Finish | None = None
    token_ids: list[int] | UnsetType = UNSET
    prompt_token_ids: list[int] | UnsetType = UNSET


class ChatChunk(Frozen, kw_only=True):
    """An event of a chat's stream."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    system_fingerprint: str | None = None
    choices: list[ChatChunkChoice]
    usage: Usage | UnsetType | None = UNSET


class Model(Frozen, kw_only=True):
    """The model that is served."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "bedstone"
    max_model_len: int


class Models(Frozen, kw_only=True):
    """All of them: one."""

    object: Literal["list"] = "list"
    data: list[Model]


class Tokenized(Frozen):
    """A prompt's ids."""

    tokens: list[int]
    count: int
    max_model_len: int


class Detokenized(Frozen):
    """The text of some ids, special tokens and all."""

    prompt: str


class Health(Frozen):
    """Whether requests are taken."""

    status: Literal["ok", "draining", "failed"]


class Fault(Frozen):
    """What is wrong, and with which field."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class Failure(Frozen):
    """The body of any answer that is no success, and the event that ends a stream that failed."""

    error: Fault


class Row(Frozen):
    """A sequence that runs: tokens held, and how many of these it made."""

    held: int
    made: int


class Picture(Frozen, kw_only=True):
    """What the page draws. Counters count from the start of the engine."""

    model: str
    context: int
    sequences: int
    queue: int
    running: int
    waiting: int
    batch: list[Row]
    pages_total: int
    pages_held: int
    pages_cached: int
    steps: int
    prompt_tokens: int
    cached_tokens: int
    made_tokens: int
    seconds: float
