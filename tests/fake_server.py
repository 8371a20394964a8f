"""An OpenAI server that answers with a script, for tests of what asks one."""

import asyncio
import json
import threading
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route


class Script:
    """What it says: `pieces` a time, `delay` seconds apart; what was asked of it."""

    def __init__(self, pieces=3, delay=0.0, usage=True, cut=False, status=200, error=False):
        self.pieces, self.delay, self.usage = pieces, delay, usage
        self.cut, self.status, self.error = cut, status, error
        self.asked = []
        self.keys = []
        self.live = self.most_live = 0

    async def models(self, request):
        self.keys.append(request.headers.get("authorization"))
        return JSONResponse({"object": "list", "data": [{"id": "scripted"}]})

    async def completions(self, request):
        self.asked.append(await request.json())
        if self.status != 200:
            return JSONResponse({"error": {"message": "no"}}, self.status)
        piece = {"text": "so "}
        if request.url.path == "/v1/chat/completions":
            piece = {"delta": {"content": "so "}}
        return StreamingResponse(self._events(piece), media_type="text/event-stream")

    async def _events(self, piece):
        self.live += 1
        self.most_live = max(self.most_live, self.live)
        try:
            for _ in range(self.pieces):
                await asyncio.sleep(self.delay)
                yield _event({"choices": [piece]})
            if self.error:
                yield _event({"error": {"message": "broken"}})
            if self.usage:
                counted = {"prompt_tokens": 7, "completion_tokens": 2 * self.pieces}
                details = {"prompt_tokens_details": {"cached_tokens": 4}}
                yield _event({"choices": [], "usage": counted | details})
            if not self.cut:
                yield "data: [DONE]\n\n"
        finally:
            self.live -= 1


def _event(value):
    return f"data: {json.dumps(value)}\n\n"


@contextmanager
def serving(script):
    """The URL of a server that says a script, while it runs."""
    app = Starlette(
        routes=[
            Route("/v1/models", script.models),
            Route("/v1/completions", script.completions, methods=["POST"]),
            Route("/v1/chat/completions", script.completions, methods=["POST"]),
        ]
    )
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            threading.Event().wait(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
