"""`bedstone bench serve`."""

import json

import pytest

from bedstone.bench.load import busy
from command_line import bedstone
from fake_server import Script, serving

FEW = ("--requests", 4, "--clients", 2, "--words", 3, "--tokens", 6)


def test_two_servers_are_loaded_in_turns_and_compared():
    fast, slow = Script(pieces=3), Script(pieces=3, delay=0.02)
    with serving(fast) as one, serving(slow) as two:
        done = bedstone("bench", "serve", one, two, *FEW, "--rounds", 2, "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert [server["requests"] for server in found["servers"]] == [8, 8]
    assert [len(server["rates"]) for server in found["servers"]] == [2, 2]
    assert found["first_over_others"][0]["median"] > 1
    assert found["servers"][1]["first"]["p50"] >= 0.02
    assert [ask["prompt"] for ask in fast.asked] != [ask["prompt"] for ask in fast.asked[4:]]
    asked = [sorted(ask["prompt"] for ask in script.asked) for script in (fast, slow)]
    assert asked[0] == asked[1]


def test_the_text_names_each_measure(tmp_path):
    plot = tmp_path / "waits.svg"
    with serving(Script()) as url:
        done = bedstone("bench", "serve", url, *FEW, "--plot", plot)
    assert done.code == 0, done.err
    for said in (
        "first token",
        "a further token",
        "between pieces",
        "whole answer",
        "tok/s",
        "client: 1 process",
    ):
        assert said in done.out
    assert plot.read_text().startswith("<svg")


def test_the_client_says_how_busy_it_was():
    with serving(Script(delay=0.01)) as url:
        done = bedstone("bench", "serve", url, *FEW, "--processes", 2, "--json")
    client = json.loads(done.out)["servers"][0]["client"]
    assert client["processes"] == 2
    assert client["cpu_seconds_per_token"] == client["cpu_seconds"] / 24
    assert 0 < client["share"] < 1
    assert client["bound"] is ("likely what was measured" in done.err)


def test_a_client_that_is_the_bound_is_warned_of(monkeypatch):
    monkeypatch.setattr(busy, "MOST_SHARE", 0.0)
    with serving(Script()) as url:
        done = bedstone("bench", "serve", url, *FEW, "--json")
    assert json.loads(done.out)["servers"][0]["client"]["bound"] is True
    assert f"{url}: the client is likely what was measured" in done.err


def test_answers_in_time_are_counted_by_themselves():
    with serving(Script(delay=0.03)) as url:
        soon = bedstone(
            "bench", "serve", url, *FEW, "--within", "first=10000,whole=20000", "--json"
        )
        done = bedstone("bench", "serve", url, *FEW, "--within", "first=10")
    assert json.loads(soon.out)["servers"][0]["goodput"]["requests"] == 4
    assert "0 of 4 requests (0.0%) met the goal, 0.00 a second" in done.out


def test_a_chat_is_warmed_up_and_asked_a_files_prompts(tmp_path):
    script = Script()
    (tmp_path / "asked").write_text('{"prompt": "one"}\n{"prompt": "two"}\n')
    with serving(script) as url:
        more = ("--prompts", tmp_path / "asked", "--chat", "--warm-up", 3)
        done = bedstone("bench", "serve", url, *FEW, *more, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["servers"][0]["requests"] == 4
    said = [ask["messages"][0]["content"] for ask in script.asked]
    assert len(said) == 7
    assert sorted(said[3:]) == ["one", "one", "two", "two"]


def test_a_rate_is_kept_by_more_processes():
    script = Script(delay=0.05)
    with serving(script) as url:
        done = bedstone("bench", "serve", url, *FEW, "--rate", 100, "--processes", 2, "--json")
    found = json.loads(done.out)
    assert (found["clients"], found["servers"][0]["requests"]) == (None, 4)
    assert script.most_live > 2


def test_a_refused_answer_ends_it_with_1():
    with serving(Script(status=503)) as url:
        done = bedstone("bench", "serve", url, *FEW)
    assert done.code == 1
    assert "4 times: status 503" in done.out


def test_an_address_that_is_no_servers_own_is_told_in_a_line():
    with serving(Script()) as url:
        done = bedstone("bench", "serve", f"{url}/v1", *FEW)
    assert (done.code, done.out) == (2, "")
    assert f"bedstone: `{url}/v1` lists no models at `/v1/models`: " in done.err
    assert "404" in done.err
    assert done.err.count("\n") == 1


def test_answers_go_past_the_models_end_where_that_is_wanted():
    script = Script()
    with serving(script) as url:
        for options in ((), ("--ignore-eos",)):
            assert bedstone("bench", "serve", url, *FEW, *options).code == 0
    assert [ask.get("ignore_eos") for ask in script.asked] == [None] * 4 + [True] * 4


def test_a_key_is_read_from_its_file(tmp_path):
    script = Script()
    (tmp_path / "key").write_text("s3cret\n")
    with serving(script) as url:
        done = bedstone("bench", "serve", url, *FEW, "--api-key-file", tmp_path / "key")
    assert done.code == 0, done.err
    assert script.keys == ["Bearer s3cret"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--words", "9-1"), "`--words` is `9-1`"),
        (("--rate", "0"), "`--rate` is 0.0"),
        (("--rate", "nan"), "`--rate` is nan"),
        (("--within", "gap=3"), "`--within` is `gap=3`"),
        (("--prompts", "no-such-file"), "`no-such-file` cannot be read"),
        (("--prompts", "no-such-file", "--shared", "3"), "`--shared` is of made-up words"),
        ((), "lists no models"),
    ],
)
def test_what_cannot_be_is_told(options, said):
    done = bedstone("bench", "serve", "http://127.0.0.1:1", *options)
    assert done.code == 2
    assert said in done.err


def test_a_bench_without_a_server_is_as_before():
    done = bedstone("bench")
    assert done.code == 2
    assert "one model is timed" in done.err
