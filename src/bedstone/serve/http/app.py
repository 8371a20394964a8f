"""The application: which path does what."""

from collections.abc import Awaitable, Callable, Iterable

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from bedstone.serve.http.body import read_body
from bedstone.serve.http.call import Endpoint, answered
from bedstone.serve.http.chat import ChatEndpoint
from bedstone.serve.http.completions import CompletionEndpoint
from bedstone.serve.http.decode import decoded
from bedstone.serve.http.front import Front
from bedstone.serve.http.guard import REQUEST_ID, Guard
from bedstone.serve.http.page import page_response
from bedstone.serve.http.prompts import Prompt
from bedstone.serve.http.refusal import bad
from bedstone.serve.http.replies import (
    Detokenized,
    Health,
    Model,
    Models,
    Picture,
    Row,
    Tokenized,
)
from bedstone.serve.http.schema import openapi
from bedstone.serve.http.shapes import DetokenizeRequest, TokenizeRequest

Handler = Callable[[HttpRequest], Awaitable[Response]]

TOKENIZE = msgspec.json.Decoder(TokenizeRequest)
DETOKENIZE = msgspec.json.Decoder(DetokenizeRequest)


def application(front: Front) -> ASGIApp:
    """The whole of it, guarded."""
    handlers = _Handlers(front)
    routes = [
        _calls("/v1/chat/completions", ChatEndpoint(front)),
        _calls("/v1/completions", CompletionEndpoint(front)),
        Route("/v1/models", handlers.models),
        Route("/v1/models/{model:path}", handlers.model),
        Route("/tokenize", handlers.tokenize, methods=["POST"]),
        Route("/detokenize", handlers.detokenize, methods=["POST"]),
        Route("/health", handlers.health),
        Route("/metrics", handlers.metrics),
        Route("/stats", handlers.stats),
        Route("/openapi.json", handlers.openapi),
        Route("/", handlers.page),
    ]
    paths = frozenset(route.path for route in routes)
    guard = Guard(Router(routes, redirect_slashes=False), front, paths)
    origins = front.settings.origins
    return _open_to(guard, origins) if origins else guard


def _open_to(app: ASGIApp, origins: Iterable[str]) -> ASGIApp:
    """The same for scripts of web pages from elsewhere, which browsers ask about first."""
    return CORSMiddleware(
        app,
        allow_origins=sorted(origins),
        allow_methods=("GET", "POST"),
        allow_headers=("*",),
        expose_headers=("retry-after", REQUEST_ID),
    )


def _calls(path: str, endpoint: Endpoint) -> Route:
    async def handle(request: HttpRequest) -> Response:
        body = await read_body(request, endpoint.front.settings)
        return await answered(endpoint, request, body)

    return Route(path, handle, methods=["POST"])


class _Handlers:
    """The small ones."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._model = Model(
            id=front.settings.model,
            created=front.created,
            max_model_len=front.limits.context,
        )

    async def models(self, _request: HttpRequest) -> Response:
        """`/v1/models`."""
        return _json(Models(data=[self._model]))

    async def model(self, request: HttpRequest) -> Response:
        """`/v1/models/{model}`."""
        self._front.require_model(request.path_params["model"])
        return _json(self._model)

    async def health(self, _request: HttpRequest) -> Response:
        """`/health`: 503 while the server drains, and once its device has failed."""
        if self._front.failed:
            return _json(Health("failed"), 503)
        return _json(Health("draining"), 503) if self._front.draining else _json(Health("ok"))

    async def metrics(self, _request: HttpRequest) -> Response:
        """`/metrics`."""
        text = self._front.meters.text(await self._front.link.look())
        return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})

    async def stats(self, _request: HttpRequest) -> Response:
        """`/stats`: what the page draws."""
        front = self._front
        stats, limits = (await front.link.look()).stats, front.limits
        shared = {
            name: getattr(stats, name) for name in Picture.__struct_fields__ if hasattr(stats, name)
        }
        picture = Picture(
            model=front.settings.model,
            context=limits.context,
            sequences=limits.sequences,
            queue=limits.queue,
            seconds=front.clock() - front.began,
            **{**shared, "batch": [Row(held, made) for _, held, made in stats.batch]},
        )
        return _json(picture)

    async def tokenize(self, request: HttpRequest) -> Response:
        """`/tokenize`."""
        front = self._front
        asked = decoded(await read_body(request, front.settings), TOKENIZE)
        front.require_model(asked.model)
        text, messages = asked.prompt, asked.messages
        if (text is None) == (messages is None):
            raise bad("expected one of `prompt` and `messages`", "prompt")
        prompter, tools = front.prompter, asked.tools or ()
        given = asked.chat_template_kwargs or {}
        switches = front.settings.usual.variables(given, tools=bool(tools))

        def prompted() -> Prompt:
            if text is not None:
                return prompter.text(text)
            return prompter.chat(messages or (), tools, switches)

        prompt = await front.workers.run(prompted)
        ids = list(prompt.ids)
        return _json(Tokenized(ids, len(ids), front.limits.context))

    async def detokenize(self, request: HttpRequest) -> Response:
        """`/detokenize`."""
        front = self._front
        asked = decoded(await read_body(request, front.settings), DETOKENIZE)
        front.require_model(asked.model)
        text = await front.workers.run(lambda: front.tokenizer.decode(asked.tokens, special=True))
        return _json(Detokenized(text))

    async def openapi(self, _request: HttpRequest) -> Response:
        """`/openapi.json`."""
        return _json(openapi(self._front.settings))

    async def page(self, _request: HttpRequest) -> Response:
        """`/`."""
        return page_response()


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
