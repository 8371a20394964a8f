"""Two thousand requests of 64 clients: nothing is lost, repeated or mixed, memory stays flat."""

import asyncio
import json
import os
from pathlib import Path

import httpx
import numpy as np
import pytest

from letters import write_tokenizer
from packages import compiled
from served import running
from tiny_models import write_tiny

pytestmark = pytest.mark.slow

CLIENTS, REQUESTS, DISTINCT, SEQUENCES = 64, 2000, 60, 16
CONTEXT = 160
LEAVE_EVERY = 25
FLAT = 1.1
"""How much more memory the last three quarters of the requests may leave than the first."""


@pytest.fixture(scope="module")
def package(tmp_path_factory, cache):
    folder = tmp_path_factory.mktemp("load")
    model = write_tiny("llama", folder / "checkpoint")
    model.config.max_position_embeddings = CONTEXT
    model.save_pretrained(folder / "checkpoint")
    write_tokenizer(folder / "checkpoint")
    how = {"numerics": "precise", "sequences": SEQUENCES, "sampler": True}
    return compiled(str(folder / "checkpoint"), folder / "package", cache, **how).path


def asks(vocab):
    """Prompts of 1 to 60 tokens, a few with one opening; greedy, drawn, and two at a time."""
    rng = np.random.default_rng(3)
    opening = rng.integers(3, vocab, 40).tolist()
    for at in range(DISTINCT):
        prompt = rng.integers(3, vocab, rng.integers(1, 60)).tolist()
        body = {
            "prompt": (opening if at % 3 == 0 else []) + prompt,
            "max_tokens": int(rng.integers(1, 25)),
            "temperature": (0, 1, 0.7)[at % 3],
            "seed": at,
            "ignore_eos": True,
            "return_token_ids": True,
        }
        yield {**body, "n": 2} if at % 10 == 9 else body


async def whole(client, body):
    """The token ids of each choice, from an answer in one piece."""
    reply = await client.post("/v1/completions", json=body)
    assert reply.status_code == 200, reply.text
    found = reply.json()
    assert found["usage"]["completion_tokens"] == body["max_tokens"] * body.get("n", 1)
    return [choice["token_ids"] for choice in found["choices"]]


async def streamed(client, body, leave=False):
    """The same from a stream; None where the client leaves in the middle of it."""
    made = [[] for _ in range(body.get("n", 1))]
    asked = {**body, "stream": True}
    async with client.stream("POST", "/v1/completions", json=asked) as reply:
        assert reply.status_code == 200
        async for line in reply.aiter_lines():
            if line == "data: [DONE]":
                return made
            if line:
                for choice in json.loads(line.removeprefix("data: "))["choices"]:
                    made[choice["index"]] += choice.get("token_ids") or []
                if leave:
                    return None
    raise AssertionError("the stream ended without its closing event")


def resident(process):
    """MiB that a process holds."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


async def load(url, process, requests=REQUESTS):
    """Which requests ended, MiB held after a quarter and after all of them, and the last figures.

    Each is answered as it is alone.
    """
    limits = httpx.Limits(max_connections=CLIENTS)
    async with httpx.AsyncClient(base_url=url, timeout=300, limits=limits) as client:
        bodies = list(asks(vocab=61))
        alone = [await whole(client, body) for body in bodies]
        queue = iter(range(requests))
        ended, held = [], []

        async def work():
            for number in queue:
                at = number * 7919 % DISTINCT
                leave = number % LEAVE_EVERY == 0
                way = streamed(client, bodies[at], leave) if number % 2 == 0 else None
                made = await (way or whole(client, bodies[at]))
                assert made is None or made == alone[at], (number, at)
                ended.append(number)
                if len(ended) in {requests // 4, requests}:
                    held.append(resident(process))

        await asyncio.gather(*(work() for _ in range(CLIENTS)))
        stats = (await client.get("/stats")).json()
    return ended, held, stats


def test_nothing_is_lost_repeated_or_mixed_and_memory_is_flat(package, cache):
    place = {"BEDSTONE_CACHE": str(cache)}
    with running(package, "--tokens", "2048", "--queue", "100", **place) as (process, url):
        ended, held, stats = asyncio.run(load(url, process))
    assert sorted(ended) == list(range(REQUESTS))
    assert held[1] < held[0] * FLAT
    assert (stats["running"], stats["waiting"], stats["pages_held"]) == (0, 0, 0)
    assert os.getpid() != process.pid
