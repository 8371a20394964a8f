import json

import pytest

from bedstone.cli.repeats import repeats, spelled
from bedstone.cli.table import columns, size
from command_line import bedstone
from conformance_cases import ROOT
from large_manifest import LAYERS, large_manifest

ACCEPT = ROOT / "accept"


def test_a_manifest_is_shown_by_section():
    out = bedstone("show", ACCEPT / "06_speculative.json").out
    for words in (
        "model speculative",
        "var tokens, 1 to 64, counts rows",
        "prefill: 8 x tokens rows, context ctx, 3 calls, 3 launches",
        "expand · feed · tap",
        "memory at ctx=4096, seqs=8, tokens=64",
        "256 bytes a token each",
        "111111111111  k.cubin",
        "up to 8 sequences of 4 rows, hands back drafted",
    ):
        assert words in out


def test_memory_is_sized_at_the_vars_given():
    path = ACCEPT / "06_speculative.json"
    whole = json.loads(bedstone("show", path, "--json").out)["memory"]
    small = json.loads(bedstone("show", path, "--json", "--vars", "tokens=2,seqs=1").out)["memory"]
    assert whole["buffers"]["carry"] == {"count": 1, "bytes": 64 * 32 * 2}
    assert small["buffers"]["carry"] == {"count": 1, "bytes": 2 * 32 * 2}
    assert small["vars"] == {"ctx": 4096, "seqs": 1, "tokens": 2}
    # i64 ids, pos, slots and anchor, i32 lens, real_row, the prefix sums and the page table
    assert small["buffers"]["input"]["bytes"] == 8 * (2 + 2 + 2 + 1) + 4 * (1 + 2 + 9 + 4)
    assert small["states"] == [{"names": ["kv"], "bytes": 256, "per": "a token"}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "rows=1",
            "`--vars` names `rows`, expected a var of the manifest: `ctx`, `seqs`, `tokens`",
        ),
        ("tokens=65", "sets `tokens` to `65`, expected 1 to 64"),
        ("tokens=0", "expected 1 to 64"),
        ("tokens", "sets `tokens` to ``"),
        ("tokens=-1", "expected 1 to 64"),
        ("tokens=" + "9" * 5000, "9…`, expected 1 to 64"),
    ],
)
def test_vars_are_those_of_the_manifest(text, words):
    ended = bedstone("show", ACCEPT / "06_speculative.json", "--vars", text)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err


@pytest.mark.parametrize("name", sorted(p.name for p in ACCEPT.glob("*.json") if p.name < "20"))
def test_every_accepted_manifest_is_shown(name):
    assert bedstone("show", ACCEPT / name).code == 0
    shown = json.loads(bedstone("show", ACCEPT / name, "--json").out)
    assert (shown["protocol"] is None) == bool(shown["protocol_faults"])


def test_a_manifest_that_breaks_a_rule_is_not_shown(tmp_path):
    path = tmp_path / "m.json"
    text = (
        (ACCEPT / "01_minimal.json")
        .read_text()
        .replace('"schema_version": 7', '"schema_version": 6')
    )
    path.write_text(text)
    ended = bedstone("show", path)
    assert (ended.code, ended.out) == (2, "")
    assert "breaks 1 rule(s), the first: " in ended.err
    assert "`bedstone verify` lists them" in ended.err


def test_a_manifest_of_2500_calls_fits_on_a_page(tmp_path):
    path = tmp_path / "large.json"
    path.write_text(json.dumps(large_manifest()))
    out = bedstone("show", path).out
    assert f"{LAYERS} × (" in out
    assert len(out.splitlines()) < 80
    assert max(map(len, out.splitlines())) < 160


# --- repeats ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("a", "a"),
        ("aab", "2 × a · b"),
        ("abab", "2 × (a · b)"),
        ("eabababh", "e · 3 × (a · b) · h"),
        ("aabaab", "2 × (2 × a · b)"),
        ("abcabd", "a · b · c · a · b · d"),
    ],
)
def test_what_repeats_is_written_once(names, text):
    assert spelled(list(names)) == [text]


def test_repeats_lose_no_call():
    for seed in range(512):
        names = [("a", "b", "c")[(seed >> (n * 2)) % 3] for n in range(9)]
        again = [name for run in repeats(names) for _ in range(run.times) for name in run.names]
        assert again == names


def test_a_program_without_calls_has_no_lines():
    assert spelled([]) == []


def test_a_list_that_does_not_repeat_is_cut_short():
    lines = spelled([f"op{n}" for n in range(2000)])
    assert "1940 more calls" in " ".join(lines)
    assert len(lines) < 10


def test_columns_stand_under_each_other_and_sizes_have_units():
    assert columns([("a", "bb"), ("ccc", "d")]) == ["a    bb", "ccc  d"]
    assert columns([]) == []
    assert [size(n) for n in (0, 1023, 1024, 3 * 2**30)] == [
        "0 bytes",
        "1023 bytes",
        "1.0 KiB",
        "3.0 GiB",
    ]
