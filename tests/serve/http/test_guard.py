"""Keys, names, paths and methods; models, ids and the page."""

import hashlib
import logging
import re
from base64 import b64encode

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bedstone.serve.http.settings import digests
from bedstone.serve.requests import Stats

BODY = {"prompt": [0], "max_tokens": 1, "temperature": 0}
PATH = "/v1/completions"


def test_a_key_opens_it_and_nothing_else_does(fronted):
    front = fronted(keys=digests(["open sesame", "other key"]))
    for key in ("open sesame", "other key"):
        headers = {"authorization": f"Bearer {key}"}
        assert front.post(PATH, BODY, headers=headers).status_code == 200
        assert front.get("/metrics", headers=headers).status_code == 200
    wrong = ({}, {"authorization": "Bearer nope"}, {"authorization": "open sesame"})
    for headers in (*wrong, {"authorization": "Bearer \xff"}):
        given = {name: value.encode("latin-1") for name, value in headers.items()}
        response = front.post(PATH, BODY, headers=given)
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
        assert response.json()["error"]["code"] == "invalid_api_key"
    closed = ("/metrics", "/stats", "/v1/models", "/tokenize", "/nowhere")
    assert [front.get(path).status_code for path in closed] == [401] * 5
    assert [front.get(path).status_code for path in ("/", "/health", "/openapi.json")] == [200] * 3


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8000", 200),
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("evil.example", 403),
        ("", 403),
    ],
)
def test_only_its_own_names_are_answered(fronted, host, status):
    front = fronted(hosts=frozenset({"127.0.0.1", "localhost", "[::1]"}))
    response = front.get("/v1/models", headers={"host": host})
    assert response.status_code == status


def test_paths_and_methods_that_are_none(fronted):
    front = fronted()
    assert front.get("/nowhere").json()["error"]["type"] == "invalid_request_error"
    response = front.get(PATH)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert front.post("/health", {}).status_code == 405
    assert front.get("/health/").status_code == 404


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/chat/completions", "did you mean `/v1/chat/completions`?"),
        ("/v1/v1/completions", "did you mean `/v1/completions`?"),
        ("/v1/completions/", "did you mean `/v1/completions`?"),
        ("/v1/health", "did you mean `/health`?"),
        ("/v1/responses", "ask `/v1/chat/completions`"),
        ("/v1/embeddings", "makes text only"),
        ("/api/tags", "`/openapi.json` lists"),
    ],
)
def test_who_asks_at_the_wrong_place_is_told_the_right_one(fronted, path, hint):
    response = fronted().post(path, {})
    assert (response.status_code, response.json()["error"]["code"]) == (404, "path")
    assert hint in response.json()["error"]["message"]
    response = fronted().get(PATH)
    assert response.json()["error"]["message"] == "GET `/v1/completions`: expected POST"


def test_every_answer_has_the_name_of_its_request(fronted):
    front = fronted()
    own = [front.get("/health").headers["x-request-id"] for _ in range(2)]
    assert own[0] != own[1]
    for name, kept in (("a-1:b_2.c", True), ("a b", False), ("x" * 129, False), ("\xff", False)):
        headers = {"x-request-id": name.encode("latin-1")}
        for response in (
            front.get("/health", headers=headers),
            front.post(PATH, {**BODY, "stream": True}, headers=headers),
            front.post(PATH, {}, headers=headers),
            front.get("/nowhere", headers=headers),
        ):
            assert (response.headers["x-request-id"] == name) == kept


def test_requests_are_logged_where_that_is_wanted(fronted, caplog):
    front = fronted()
    with caplog.at_level(logging.INFO, "bedstone.serve.requests"):
        front.post(f"{PATH}?key=secret", BODY, headers={"x-request-id": "mine"})
        front.get("/a%0Ab%1B")
    called, odd = [record.getMessage() for record in caplog.records]
    assert re.fullmatch(r"\S+ POST /v1/completions 200 \d+\.\d{3} s mine", called)
    assert re.fullmatch(r"\S+ GET /a%0Ab%1B 404 \d+\.\d{3} s [0-9a-f]{16}", odd)
    caplog.clear()
    front.post(PATH, BODY)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("allowed", "origin", "told"),
    [
        (["http://localhost:3000"], "http://localhost:3000", "http://localhost:3000"),
        (["http://localhost:3000"], "http://localhost:3001", None),
        (["*"], "null", "*"),
        ([], "http://localhost:3000", None),
    ],
)
def test_pages_of_allowed_origins_may_ask(fronted, allowed, origin, told):
    front = fronted(origins=frozenset(allowed), keys=digests(["open sesame"]))
    asks = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-stainless-os",
    }
    before = front.run(lambda client: client.options(PATH, headers=asks))
    assert before.headers.get("access-control-allow-origin") == told
    assert (before.status_code == 200) == (told is not None)
    if told is not None:
        assert "authorization" in before.headers["access-control-allow-headers"]
    keyed = {"origin": origin, "authorization": "Bearer open sesame"}
    for body in (BODY, {**BODY, "stream": True}):
        response = front.post(PATH, body, headers=keyed)
        assert response.headers.get("access-control-allow-origin") == told
    # a page reads why it was refused
    refused = front.post(PATH, BODY, headers={"origin": origin})
    assert (refused.status_code, refused.headers.get("access-control-allow-origin")) == (401, told)


def test_what_is_refused_is_not_told_back_at_length(fronted):
    front = fronted()
    for body in ({**BODY, "model": "m" * 10**6}, {**BODY, "f" * 10**6: 1}):
        assert len(front.post(PATH, body).content) < 3000
    assert len(front.get("/" + "x" * 10_000).content) < 3000


def test_what_fails_is_said_to_have_and_no_more(fronted, monkeypatch, caplog):
    front = fronted()

    def broken(*_):
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(front.front.meters, "text", broken)
    response = front.get("/metrics")
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["type"]) == (500, "internal", "server_error")
    assert "secret" not in response.text
    assert "ZeroDivisionError: a secret" in caplog.text
    assert front.post(PATH, BODY).status_code == 200


def test_models(fronted):
    front = fronted()
    [model] = front.get("/v1/models").json()["data"]
    assert (model["id"], model["max_model_len"]) == ("scripted", 4096)
    assert front.get("/v1/models/scripted").json() == model
    response = front.get("/v1/models/a/b")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "model_not_found")


def test_ids_there_and_back(fronted):
    front = fronted()
    told = front.post("/tokenize", {"prompt": "hi"}).json()
    assert (told["count"], told["max_model_len"]) == (2, 4096)
    assert front.post("/detokenize", {"tokens": told["tokens"]}).json() == {"prompt": "hi"}
    chat = front.post("/tokenize", {"messages": [{"role": "user", "content": "hi"}]}).json()
    text = front.post("/detokenize", {"tokens": chat["tokens"]}).json()["prompt"]
    assert text == "[user]hi[answer]"
    tool = {"type": "function", "function": {"name": "f"}}
    asked = {"messages": [{"role": "user", "content": "hi"}], "tools": [tool]}
    longer = front.post("/tokenize", asked).json()
    assert longer["count"] > chat["count"]
    for body in ({}, {"prompt": "a", "messages": []}, {"prompt": 1}):
        assert front.post("/tokenize", body).status_code == 400
    assert front.post("/detokenize", {"tokens": [10**6]}).json() == {"prompt": ""}


def test_counters(fronted):
    front = fronted()
    # the tokens of a prompt that is scored are nobody's answer
    front.complete([0, 1], max_tokens=3, echo=True, logprobs=0)
    front.post(PATH, {"prompt": [0], "max_tokens": -1})
    for path in ("/v1/models/scripted", "/v1/models/a/b", "/a", "/b"):
        front.get(path)
    text = front.get("/metrics").text
    for line in (
        'bedstone_responses_total{route="/v1/completions",status="200"} 1.0',
        'bedstone_responses_total{route="/v1/completions",status="400"} 1.0',
        'bedstone_responses_total{route="/v1/models/{model}",status="200"} 1.0',
        'bedstone_responses_total{route="/v1/models/{model}",status="404"} 1.0',
        'bedstone_responses_total{route="other",status="404"} 2.0',
        'bedstone_answers_total{finish="length"} 1.0',
        "bedstone_time_to_first_token_seconds_count 1.0",
        "bedstone_inter_token_seconds_count 2.0",
        "bedstone_request_seconds_count 1.0",
        "bedstone_made_tokens_total 4.0",
        'bedstone_requests_total{reason="length"} 1.0',
        "bedstone_running 0.0",
        "bedstone_aborts_total 0.0",
        "bedstone_answer_tokens_sum 3.0",
        'bedstone_answer_tokens_bucket{le="2.0"} 0.0',
        'bedstone_answer_tokens_bucket{le="4.0"} 1.0',
        "bedstone_answered_prompt_tokens_sum 2.0",
        "bedstone_queue_seconds_count 2.0",
        "bedstone_queue_seconds_sum 0.5",
        "bedstone_rounds_total 4.0",
        "bedstone_drafted_total 8.0",
        'bedstone_accepted_total{place="1"} 3.0',
        'bedstone_accepted_total{place="2"} 1.0',
    ):
        assert line in text.splitlines()


def test_every_counter_says_what_it_is_as_prometheus_wants_it(fronted):
    text = fronted().get("/metrics").text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    own = {name: family for name, family in families.items() if not name.endswith("_created")}
    assert all(name.startswith("bedstone_") for name in families)
    assert {family.type for family in own.values()} == {"counter", "gauge", "histogram", "summary"}
    assert all(family.documentation.endswith(".") for family in own.values())
    for name, family in own.items():
        if family.type == "counter":
            assert f"# TYPE {name}_total counter" in text
    stats = {*Stats.__struct_fields__} - {"batch", "finished", "begun", "waited_seconds"}
    assert stats <= {name.removeprefix("bedstone_") for name in own}


def test_the_page_is_one_file_under_a_strict_policy(fronted):
    response = fronted().get("/")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag, source in (("script", "script-src"), ("style", "style-src")):
        [inside] = re.findall(f"<{tag}>(.*?)</{tag}>", response.text, re.DOTALL)
        digest = b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{source} 'sha256-{digest}'" in policy
    without_names = response.text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//[a-z]|@import|url\(", without_names)


def test_the_stats_that_the_page_draws(fronted):
    front = fronted()
    front.complete([0], max_tokens=3)
    stats = front.get("/stats").json()
    assert (stats["made_tokens"], stats["running"], stats["batch"]) == (3, 0, [])
    assert (stats["context"], stats["sequences"], stats["pages_total"]) == (4096, 4, 64)
