"""A call from its body to its answer, at once or as a stream of events."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Protocol, TypeVar

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bedstone.serve.http.choice import Choice
from bedstone.serve.http.decode import decoded
from bedstone.serve.http.front import Front
from bedstone.serve.http.order import Order
from bedstone.serve.http.refusal import Refusal, bad
from bedstone.serve.http.run import Run
from bedstone.serve.text.answer import Delta

DONE = b"data: [DONE]\n\n"
COMMENT = b":\n\n"

ResultT = TypeVar("ResultT")


class Endpoint(Protocol):
    """One way of asking and telling."""

    @property
    def front(self) -> Front:
        """What it stands on."""

    @property
    def decoder(self) -> "msgspec.json.Decoder[Any]":
        """Of its bodies."""

    async def order(self, asked: Any, size: int) -> Order:  # noqa: ANN401 - the decoder's type
        """A call made ready."""

    async def begin(self, order: Order) -> None:
        """Whatever comes before the first token."""

    def chunk(self, order: Order, choice: Choice, delta: Delta) -> bytes:
        """An event of the stream."""

    def usage(self, order: Order) -> bytes:
        """The event with the counts."""

    def whole(self, order: Order) -> bytes:
        """The answer at once."""


class GoneError(Exception):
    """The client has left."""


async def answered(endpoint: Endpoint, request: HttpRequest, body: bytes) -> Response:
    """The response to a call.

    Raises `Refusal`: there is none. Raises `GoneError`: nobody wants it any more.
    """
    front = endpoint.front
    asked = decoded(body, endpoint.decoder)
    front.require_model(asked.model)
    try:
        order = await endpoint.order(asked, len(body))
    except RecursionError:
        raise bad("the body is nested too deeply", code="invalid_json") from None
    run = front.run()
    try:
        await unless_gone(request, _begun(endpoint, order, run))
        for choice in order.choices:
            _close_unasked(order, choice)
        if asked.stream:
            return EventStream(endpoint, order, run)
        await unless_gone(request, _finished(run))
    except GoneError:
        run.abort()
        raise
    except BaseException:
        run.close()
        raise
    _count(front, order)
    return Response(endpoint.whole(order), media_type="application/json")


def _close_unasked(order: Order, choice: Choice) -> None:
    """A choice without a request asks for no tokens."""
    if not any(each is choice for each in order.takers.values()):
        choice.close("length")


async def _begun(endpoint: Endpoint, order: Order, run: Run) -> None:
    await endpoint.begin(order)
    if order.asks:
        await run.start(order.asks, order.takers, order.guide)


async def _finished(run: Run) -> None:
    while run.live:
        await run.more()


def _count(front: Front, order: Order) -> None:
    for prompt in order.prompts:
        front.meters.prompts.observe(len(prompt.ids))
    for choice in order.choices:
        front.meters.answers.labels(choice.finish).inc()
        front.meters.made.observe(choice.made)


async def unless_gone(request: HttpRequest, work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """What `work` comes to while its client stays.

    Raises `GoneError`: the client left first; the work was cancelled.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request.receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise GoneError
        return task.result()
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class EventStream(Response):
    """Server-sent events, each written before the next is made."""

    media_type = "text/event-stream"

    def __init__(self, endpoint: Endpoint, order: Order, run: Run) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers({"cache-control": "no-store", "x-accel-buffering": "no"})
        self._endpoint = endpoint
        self._order = order
        self._run = run

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send all of it, or stop where the client leaves."""
        gone = asyncio.ensure_future(_gone(receive))
        told = asyncio.ensure_future(self._tell(send))
        kept = asyncio.ensure_future(self._nudged())
        try:
            await asyncio.wait({told, gone}, return_when=asyncio.FIRST_COMPLETED)
            if told.done():
                told.result()
            else:
                self._run.abort()
        finally:
            for each in (told, gone, kept):
                each.cancel()
            await asyncio.gather(told, gone, kept, return_exceptions=True)
            self._run.close()

    async def _nudged(self) -> None:
        """Let the stream say now and then that it is there."""
        while True:
            await asyncio.sleep(self._endpoint.front.settings.comment_seconds)
            self._run.nudge()

    async def _tell(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        async for event in self._events():
            await send(_body(event, more=True))
        await send(_body(DONE, more=False))

    async def _events(self) -> AsyncIterator[bytes]:
        """Every event but the last, with comments while there are none; an error ends them."""
        front, order = self._endpoint.front, self._order
        try:
            while True:
                for choice in order.choices:
                    if choice.waits:
                        chunk = self._endpoint.chunk(order, choice, choice.take())
                        choice.begun = True
                        yield _event(chunk)
                if not self._run.live:
                    break
                if not await self._run.more():
                    yield COMMENT
        except Refusal as refusal:
            yield _event(refusal.body)
            return
        _count(front, order)
        if order.counts:
            yield _event(self._endpoint.usage(order))


def _event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


def _body(data: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}
