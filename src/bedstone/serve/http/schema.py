"""The OpenAPI document: what the decoders take and the replies are, by the same types."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bedstone.serve.http.idle import idle_schemas
from bedstone.serve.http.replies import (
    Chat,
    ChatChunk,
    Completion,
    Detokenized,
    Failure,
    Health,
    Model,
    Models,
    Picture,
    Tokenized,
)
from bedstone.serve.http.settings import Settings
from bedstone.serve.http.shapes import (
    ChatRequest,
    CompletionRequest,
    DetokenizeRequest,
    TokenizeRequest,
)
from bedstone.spec.frozen import Frozen
from bedstone.spec.release import VERSION

JSON, EVENTS, TEXT, HTML = "application/json", "text/event-stream", "text/plain", "text/html"
CALLED = (400, 403, 404, 408, 413, 415, 429, 500, 503, 504)
REFUSED: Mapping[int, str] = {
    400: "The request is at fault.",
    401: "No key of this server.",
    403: "Not a name of this server.",
    404: "No such model.",
    408: "The body did not come in time.",
    413: "The body is too large.",
    415: "The body does not say that it is JSON, or is packed.",
    429: "As many wait as may: come again.",
    500: "The server failed.",
    503: "The server is shutting down.",
    504: "The answer took too long.",
}


class _Operation(Frozen):
    """A method of a path: what goes in, what comes out by media type, how it may be refused."""

    path: str
    method: str
    summary: str
    asked: type[Frozen] | None
    told: Mapping[str, type | None]
    refused: Sequence[int] = (403,)
    guarded: bool = True


OPERATIONS = (
    _Operation(
        "/v1/chat/completions",
        "post",
        "Answer messages, at once or as a stream of events",
        ChatRequest,
        {JSON: Chat, EVENTS: ChatChunk},
        CALLED,
    ),
    _Operation(
        "/v1/completions",
        "post",
        "Go on with texts or token ids, at once or as a stream of events",
        CompletionRequest,
        {JSON: Completion, EVENTS: Completion},
        CALLED,
    ),
    _Operation("/v1/models", "get", "The model that is served", None, {JSON: Models}),
    _Operation("/v1/models/{model}", "get", "One model", None, {JSON: Model}, (403, 404)),
    _Operation(
        "/tokenize",
        "post",
        "The token ids of a prompt",
        TokenizeRequest,
        {JSON: Tokenized},
        CALLED,
    ),
    _Operation(
        "/detokenize",
        "post",
        "The text of token ids",
        DetokenizeRequest,
        {JSON: Detokenized},
        CALLED,
    ),
    _Operation(
        "/health", "get", "Whether requests are taken", None, {JSON: Health}, (403,), guarded=False
    ),
    _Operation("/metrics", "get", "Counters, for Prometheus", None, {TEXT: None}),
    _Operation("/stats", "get", "What the page draws", None, {JSON: Picture}),
    _Operation("/", "get", "The page", None, {HTML: None}, (403,), guarded=False),
)


def openapi(settings: Settings) -> dict[str, Any]:
    """The document of a server set up so."""
    types = {
        kind
        for operation in OPERATIONS
        for kind in (operation.asked, *operation.told.values(), Failure)
        if kind is not None
    }
    ordered = sorted(types, key=lambda kind: kind.__name__)
    references, components = msgspec.json.schema_components(
        ordered, ref_template="#/components/schemas/{name}"
    )
    for operation in OPERATIONS:
        if operation.asked is not None:
            _add_idle(components[operation.asked.__name__], operation.asked)
    known = dict(zip(ordered, references, strict=True))
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        told = _operation(operation, known, keys=bool(settings.keys))
        paths.setdefault(operation.path, {})[operation.method] = told
    parts: dict[str, Any] = {"schemas": components}
    if settings.keys:
        parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.2.0",
        "info": {"title": "Bedstone", "version": VERSION},
        "paths": paths,
        "components": parts,
    }


def _add_idle(schema: dict[str, Any], kind: type[Frozen]) -> None:
    """Tell of the fields that may be there as long as they ask for nothing."""
    schema["properties"] |= idle_schemas(kind.__struct_fields__)
    schema["additionalProperties"] = {"type": "null"}


def _operation(
    operation: _Operation, known: Mapping[type, Mapping[str, Any]], *, keys: bool
) -> dict[str, Any]:
    guarded = keys and operation.guarded
    refused = [*operation.refused, *([401] if guarded else [])]
    success = {media: _content(media, kind, known) for media, kind in operation.told.items()}
    responses: dict[str, Any] = {"200": {"description": "Success.", "content": success}}
    for status in sorted(refused):
        content = {JSON: {"schema": known[Failure]}}
        responses[str(status)] = {"description": REFUSED[status], "content": content}
    if operation.path == "/health":
        responses["503"] = {"description": REFUSED[503], "content": success}
    told: dict[str, Any] = {"summary": operation.summary, "responses": responses}
    if operation.asked is not None:
        told["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": known[operation.asked]}},
        }
    if "{model}" in operation.path:
        schema = {"type": "string"}
        told["parameters"] = [{"name": "model", "in": "path", "required": True, "schema": schema}]
    if guarded:
        told["security"] = [{"key": []}]
    return told


def _content(
    media: str, kind: type | None, known: Mapping[type, Mapping[str, Any]]
) -> dict[str, Any]:
    if kind is None:
        return {"schema": {"type": "string"}}
    if media != EVENTS:
        return {"schema": known[kind]}
    event = {"anyOf": [known[kind], known[Failure]]}
    told = {"contentMediaType": JSON, "contentSchema": event}
    data = {
        "description": "JSON, or `[DONE]` in the last.",
        "type": "string",
        "anyOf": [{"const": "[DONE]"}, told],
    }
    item = {"type": "object", "properties": {"data": data}, "required": ["data"]}
    return {"itemSchema": item}
