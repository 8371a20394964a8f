"""The whole server: the API over the real engine, on packages whose answers are known by hand."""

import asyncio
import json
import math
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

from fronts import events, told
from packages import compiled
from succ import write_succ
from whole import serving

pytestmark = pytest.mark.slow

PIECES = ["A", "Hi", "\nUser", ":", " more", b"\xf0\x9f", b"\x91\x8d", " alpha", " beta g",
          "amma", ".", "12", "3", "4", "5"]  # fmt: skip
SUCCESSOR, OTHER = -0.24274488, -4.24271288
COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
WIDTH = 4


def package_of(tmp_path_factory, cache, name, **options):
    folder = tmp_path_factory.mktemp(name)
    reference = write_succ(folder / "checkpoint", **options)
    how = {"numerics": "precise", "sequences": WIDTH, "sampler": True}
    return compiled(str(reference), folder / "package", cache, **how)


@pytest.fixture(scope="module")
def server(tmp_path_factory, cache):
    """After token i comes i + 1; the last is the end."""
    package = package_of(tmp_path_factory, cache, "succ", pieces=PIECES, eos=[15])
    with serving(package.path, cache, WIDTH) as opened:
        yield opened


@pytest.fixture(scope="module")
def uniform(tmp_path_factory, cache):
    """Every one of 256 tokens is as likely as any other."""
    shape = {"pieces": [], "vocab": 256, "context": 4096, "uniform": True}
    package = package_of(tmp_path_factory, cache, "uniform", **shape)
    with serving(package.path, cache, WIDTH) as opened:
        yield opened


def ask(server, path=COMPLETIONS, **fields):
    response = server.client.post(f"{server.url}{path}", json={"temperature": 0, **fields})
    assert response.status_code == 200, response.text
    return response.json()


def text(server, **fields):
    whole = ask(server, **fields)["choices"][0]
    response = server.client.post(
        f"{server.url}{COMPLETIONS}", json={"temperature": 0, "stream": True, **fields}
    )
    assert told(events(response.text)) == (whole["text"], whole["finish_reason"])
    return whole["text"], whole["finish_reason"]


def test_texts_ends_and_stops(server):
    everything = "Hi\nUser: more\U0001f44d alpha beta gamma.12345"
    assert text(server, prompt=[0], max_tokens=30) == (everything, "stop")
    assert text(server, prompt=[0], max_tokens=14) == (everything, "length")
    assert text(server, prompt=[0], max_tokens=8, stop="\nUser:") == ("Hi", "stop")
    assert text(server, prompt=[6], stop=["beta gamma"]) == (" alpha ", "stop")
    assert text(server, prompt="A", max_tokens=1) == ("Hi", "length")
    assert text(server, prompt=[13], ignore_eos=True, max_tokens=2)[1] == "length"
    body = ask(server, CHAT, messages=[{"role": "user", "content": "A"}], max_tokens=2)
    assert body["choices"][0]["message"]["content"] == "Hi\nUser"


@pytest.mark.parametrize("temperature", [0, 0.5, 1])
def test_g10_log_probabilities_are_of_the_model_at_every_temperature(server, temperature):
    fields = {"prompt": [0], "max_tokens": 1, "logprobs": 2, "seed": 3}
    logprobs = ask(server, **fields, temperature=temperature)["choices"][0]["logprobs"]
    top = sorted(logprobs["top_logprobs"][0].values(), reverse=True)
    assert np.allclose(top[:2], [SUCCESSOR, OTHER], atol=1e-5)
    [drawn] = logprobs["token_logprobs"]
    assert min(abs(drawn - SUCCESSOR), abs(drawn - OTHER)) < 1e-5
    assert math.isclose(SUCCESSOR, 3.999968 - math.log(math.exp(3.999968) + 15), abs_tol=1e-6)


def test_g11_a_prompt_is_scored(server):
    fields = {"prompt": [0, 1, 2], "max_tokens": 1, "echo": True, "logprobs": 1}
    [choice] = ask(server, **fields)["choices"]
    first, *others = choice["logprobs"]["token_logprobs"]
    assert first is None
    assert np.allclose(others, [SUCCESSOR] * 3, atol=1e-5)
    assert choice["text"] == "AHi\nUser:"
    [choice] = ask(server, prompt=[7, 1], max_tokens=0, echo=True, logprobs=1)["choices"]
    assert np.allclose(choice["logprobs"]["token_logprobs"][1], OTHER, atol=1e-5)


def test_an_answer_keeps_to_its_grammar(server):
    number = ask(server, prompt=[10], guided_regex="[0-9]{3}")["choices"][0]
    assert (number["text"], number["finish_reason"]) == ("123", "stop")


def test_g08_choices_differ_repeat_and_are_their_own_in_any_company(uniform):
    def drawn(**fields):
        fields = {"prompt": [0], "max_tokens": 16, "temperature": 1, **fields}
        body = ask(uniform, return_token_ids=True, **fields)
        return [tuple(choice["token_ids"]) for choice in body["choices"]]

    first = drawn(n=4, seed=7)
    assert len(set(first)) == 4
    assert drawn(seed=7) == first[:1]
    with ThreadPoolExecutor(3) as company:
        others = [company.submit(drawn, seed=seed, prompt=[seed]) for seed in range(6)]
        assert drawn(n=4, seed=7) == first
    assert len({other.result()[0] for other in others}) == 6


def test_g09_without_a_seed_answers_differ(uniform):
    fields = {"prompt": [0], "max_tokens": 16, "temperature": 1}
    answers = [ask(uniform, **fields, logit_bias={})["choices"][0]["text"] for _ in range(3)]
    same = [ask(uniform, **fields, seed=0)["choices"][0]["text"] for _ in range(3)]
    assert (len(set(answers)), len(set(same))) == (3, 1)


def test_g16_a_client_that_leaves_gives_its_pages_back(uniform):
    engine = uniform.fronted.engine
    uniform.until(lambda: engine.stats().running == 0)
    held, cancelled = engine.stats().pages_held, engine.stats().finished["cancelled"]
    connection = uniform.ask(
        COMPLETIONS, {"prompt": [0], "max_tokens": 4000, "n": 4, "stream": True}
    )
    connection.recv(100)
    uniform.until(lambda: engine.stats().running == 4)
    connection.close()
    uniform.until(lambda: engine.stats().running == 0, 3)
    uniform.until(lambda: engine.stats().pages_held == held, 3)
    assert engine.stats().finished["cancelled"] - cancelled == 4


def test_many_clients_get_each_its_own(server):
    async def main():
        async with httpx.AsyncClient(timeout=60, verify=False) as client:  # noqa: S501
            asks = [
                client.post(
                    f"{server.url}{COMPLETIONS}",
                    json={"prompt": [at % 12], "max_tokens": 1 + at % 3, "temperature": 0,
                          "return_token_ids": True},
                )
                for at in range(60)
            ]  # fmt: skip
            return await asyncio.gather(*asks)

    for at, response in enumerate(asyncio.run(main())):
        start = at % 12
        tokens = json.loads(response.text)["choices"][0]["token_ids"]
        assert tokens == list(range(start + 1, start + 2 + at % 3))
