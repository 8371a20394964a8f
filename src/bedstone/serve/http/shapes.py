"""What a client may send. Unknown fields are refused: one left out would change the answer."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from bedstone.spec.frozen import Frozen

MOST_CHOICES = 128
MOST_STOPS = 16
MOST_TOP = 20
MOST_BIASED = 300
MOST_TOOLS = 128
MOST_MESSAGES = 4096

Count = Annotated[int, Meta(ge=1, le=MOST_CHOICES)]
Probability = Annotated[float, Meta(ge=0, le=1)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
TokenId = Annotated[int, Meta(ge=0, lt=2**31)]
StopText = Annotated[str, Meta(min_length=1, max_length=1000)]
Stops = StopText | Annotated[list[StopText], Meta(max_length=MOST_STOPS)] | None
Biases = Annotated[dict[str, Annotated[float, Meta(ge=-100, le=100)]], Meta(max_length=MOST_BIASED)]
Pattern = Annotated[str, Meta(min_length=1, max_length=20_000)]
Choices = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=1000)]],
    Meta(min_length=1, max_length=1000),
]
Limit = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Name = Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_.\-]{1,64}$")]
AnyObject = dict[str, Any]


class _Strict(Frozen, forbid_unknown_fields=True, kw_only=True):
    """An object whose fields are all known."""


class StreamOptions(_Strict):
    """`include_usage` asks for a last event with the counts."""

    include_usage: bool = False
    include_obfuscation: bool | None = None


class JsonSchema(_Strict):
    """A schema by name."""

    name: str = ""
    schema: AnyObject | bool | None = None
    description: str | None = None
    strict: bool | None = None


class ResponseFormat(_Strict):
    """What form the answer has."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class StructuredOutputs(_Strict):
    """What form the answer has, as vLLM has it: one of them."""

    json: AnyObject | bool | None = None
    json_object: bool | None = None
    regex: Pattern | None = None
    choice: Choices | None = None


class _Ask(_Strict):
    """What both endpoints take. The last ones change nothing."""

    model: str | None = None
    n: Count | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Limit | None = None
    stop: Stops = None
    stop_token_ids: Annotated[list[TokenId], Meta(max_length=64)] | None = None
    ignore_eos: bool | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Probability | None = None
    top_k: Annotated[int, Meta(ge=-1, lt=2**31)] | None = None
    min_p: Probability | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repetition_penalty: Annotated[float, Meta(gt=0, le=10)] | None = None
    logit_bias: Biases | None = None
    response_format: ResponseFormat | None = None
    guided_json: AnyObject | bool | None = None
    guided_regex: Pattern | None = None
    guided_choice: Choices | None = None
    structured_outputs: StructuredOutputs | None = None
    return_token_ids: bool | None = None
    user: str | None = None
    store: bool | None = None
    metadata: AnyObject | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: AnyObject | None = None
    prompt_cache_retention: str | None = None
    prediction: AnyObject | None = None
    request_id: str | None = None


class CompletionRequest(_Ask, kw_only=True):
    """`prompt` is a text, several, token ids, or several lists of these."""

    prompt: (
        str | Annotated[list[str | TokenId | list[TokenId]], Meta(min_length=1, max_length=2**20)]
    )
    logprobs: Annotated[int, Meta(ge=0, le=5)] | None = None
    echo: bool | None = None
    best_of: Count | None = None


class TextPart(Frozen, tag_field="type", tag="text"):
    """A part of a message."""

    text: str


class RefusalPart(Frozen, tag_field="type", tag="refusal"):
    """What an earlier answer refused with: text like any other."""

    refusal: str


class CalledFunction(Frozen):
    """Which function a call was of, and the JSON text of its arguments."""

    name: str
    arguments: str | AnyObject = "{}"


class ToolCall(Frozen):
    """A call an earlier answer made."""

    function: CalledFunction
    id: str | None = None
    type: Literal["function"] = "function"


class Message(Frozen, kw_only=True):
    """What was said. Fields that are not known are what other answers carried; they are left.

    Role `function` and `function_call` are the older `tool` and `tool_calls`, `reasoning` is what
    some servers call `reasoning_content`.
    """

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[TextPart | RefusalPart] | None = None
    name: str | None = None
    function_call: CalledFunction | None = None
    tool_calls: Annotated[list[ToolCall], Meta(max_length=MOST_TOOLS)] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class Function(_Strict):
    """A function the model may call; `parameters` is a JSON schema."""

    name: Name
    description: str | None = None
    parameters: AnyObject | None = None
    strict: bool | None = None


class Tool(_Strict):
    """A tool the model may call."""

    type: Literal["function"]
    function: Function


class NamedFunction(_Strict):
    """A function by its name."""

    name: str


class NamedTool(_Strict, tag_field="type", tag="function"):
    """The one tool to call."""

    function: NamedFunction


class NamedTools(_Strict):
    """Some of the tools, and whether one of them has to be called."""

    mode: Literal["auto", "required"]
    tools: Annotated[list[NamedTool], Meta(max_length=MOST_TOOLS)]


class AllowedTools(_Strict, tag_field="type", tag="allowed_tools"):
    """The only tools that may be called."""

    allowed_tools: NamedTools


class ChatRequest(_Ask, kw_only=True):
    """`max_completion_tokens` is the newer name of `max_tokens`, and wins."""

    messages: Annotated[list[Message], Meta(min_length=1, max_length=MOST_MESSAGES)]
    max_completion_tokens: Limit | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=MOST_TOP)] | None = None
    tools: Annotated[list[Tool], Meta(max_length=MOST_TOOLS)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | AllowedTools | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    chat_template_kwargs: AnyObject | None = None


class TokenizeRequest(_Strict):
    """A text, as a completion would read it, or messages, as a chat would."""

    model: str | None = None
    prompt: str | None = None
    messages: Annotated[list[Message], Meta(min_length=1, max_length=MOST_MESSAGES)] | None = None
    tools: Annotated[list[Tool], Meta(max_length=MOST_TOOLS)] | None = None
    chat_template_kwargs: AnyObject | None = None


class DetokenizeRequest(_Strict, kw_only=True):
    """Token ids."""

    model: str | None = None
    tokens: Annotated[list[TokenId], Meta(max_length=2**20)]
