"""The rules of the serving protocol: one change breaks one of them."""

import json
from pathlib import Path

import pytest

from bedstone.errors import ManifestError
from bedstone.spec.codec import parse_value
from bedstone.verify import check, verify
from bedstone.verify.cut import CUT_RULES
from bedstone.verify.protocol import PROTOCOL_RULES, check_protocol, protocol
from conformance_cases import accepted_text
from serving_manifests import PAGED, PEERS, RECURRENT, SPECULATIVE, changed


def faults(base, *mutations, sampled=True):
    return check_protocol(changed(base, *mutations), sampled=sampled)


# Rule, base, mutations, objects at fault, words of the message.
BROKEN = [
    (
        "R-axes",
        PAGED,
        [("remove", "/vars/seqs/axis")],
        ("program decode",),
        "no var counts the `groups` axis",
    ),
    (
        "R-form",
        PAGED,
        [("replace", "/buffers/pos/shape", ["seqs"])],
        ("buffer pos",),
        "has fill `position` and shape [seqs], expected [tokens]",
    ),
    (
        "R-form",
        PAGED,
        [("replace", "/buffers/pos/shape", ["tokens", 2])],
        ("buffer pos",),
        "shape [tokens, 2], expected [tokens]",
    ),
    (
        "R-form",
        PAGED,
        [("replace", "/buffers/lens/shape", ["tokens"])],
        ("buffer lens",),
        "expected [seqs]",
    ),
    (
        "R-form",
        PAGED,
        [("replace", "/buffers/cu/shape", [8])],
        ("buffer cu",),
        "expected [n] with n at least 9",
    ),
    (
        "R-form",
        PAGED,
        [("replace", "/buffers/cu/shape", [9, 1])],
        ("buffer cu",),
        "shape [9, 1]",
    ),
    (
        "R-form",
        PAGED,
        [("replace", "/buffers/next/shape", ["seqs", "tokens"])],
        ("buffer next",),
        "expected [seqs] or [<ranks>] or [seqs, w]",
    ),
    ("R-form", PEERS, [("replace", "/buffers/bad/shape", [2])], ("buffer bad",), "expected [1]"),
    (
        "R-form",
        PEERS,
        [("replace", "/buffers/next/shape", ["all", 2])],
        ("buffer next",),
        "shape [all, 2]",
    ),
    (
        "R-form",
        SPECULATIVE,
        [("replace", "/buffers/lens/shape", ["ctx"])],
        ("buffer lens",),
        "shape [ctx], expected [seqs]",
    ),
    (
        "R-blocks",
        PEERS,
        [("remove", "/vars/all/axis")],
        ("buffer blocks",),
        "no var counts the `ranks` axis",
    ),
    (
        "R-single",
        SPECULATIVE,
        [("replace", "/buffers/anchor/shape", ["tokens"])],
        ("buffer anchor", "buffer ids"),
        "fill `token` over rows is on 2 buffers (`anchor`, `ids`)",
    ),
    (
        "R-single",
        PAGED,
        [("replace", "/buffers/ids/fill", "position")],
        ("buffer ids", "buffer pos"),
        "fill `position` is on 2 buffers",
    ),
    (
        "R-token",
        PAGED,
        [("remove", "/buffers/ids/fill")],
        (),
        "no input has fill `token` over the rows",
    ),
    (
        "R-pages",
        PAGED,
        [("replace", "/buffers/pages/shape", ["tokens", 4])],
        ("buffer pages", "state kv"),
        "page table over state `kv` of shape [tokens, 4], expected [seqs, n]",
    ),
    (
        "R-pages",
        PAGED,
        [("replace", "/buffers/pages/shape", ["seqs"])],
        ("buffer pages", "state kv"),
        "shape [seqs]",
    ),
    (
        "R-lines",
        RECURRENT,
        [("replace", "/buffers/lines/shape", [3, "tokens"])],
        ("buffer lines", "state rec"),
        "a column for each row (`tokens`), expected one for each sequence",
    ),
    (
        "R-lines",
        RECURRENT,
        [("replace", "/buffers/lines/shape", ["seqs", 3])],
        ("buffer lines", "state rec"),
        "shape [seqs, 3]",
    ),
    (
        "R-lines",
        RECURRENT,
        [("replace", "/buffers/lines/shape", [3])],
        ("buffer lines", "state rec"),
        "[n] where no program takes more than one sequence",
    ),
    (
        "R-line-count",
        RECURRENT,
        [("replace", "/buffers/lines/shape", [4, "seqs"])],
        ("buffer lines", "state rec"),
        "names 4 lines of a sequence, but state `rec` holds 3",
    ),
    (
        "R-rows",
        PAGED,
        [("replace", "/programs/decode_many/batch/rows", 9)],
        ("program decode_many", "var tokens"),
        "8 sequences of 9 rows, more than the 64 rows `tokens` allows",
    ),
    (
        "R-rows-var",
        PAGED,
        [("replace", "/programs/prefill/batch/rows", "seqs")],
        ("program prefill", "var seqs"),
        "has var `seqs` as `batch.rows`, but the rows of a call go in `tokens`",
    ),
    (
        "R-split",
        SPECULATIVE,
        [("remove", "/buffers/cu/fill")],
        ("program prefill",),
        "no input has fill `cu_seqlens` to split them",
    ),
    (
        "R-groups",
        PAGED,
        [("replace", "/programs/decode_many/batch/groups", 9)],
        ("program decode_many", "var seqs"),
        "takes 9 sequences, more than the 8 `seqs` allows",
    ),
    (
        "R-width",
        PAGED,
        [("replace", "/buffers/next/shape", ["seqs", 4])],
        ("program decode", "buffer next"),
        "4 tokens for each sequence, but its `batch.rows` is 1, expected 4",
    ),
    (
        "R-width",
        SPECULATIVE,
        [("replace", "/programs/round/batch/rows", "tokens")],
        ("program round", "buffer drafted"),
        "its `batch.rows` is tokens, expected 4",
    ),
    (
        "R-count",
        SPECULATIVE,
        [("replace", "/buffers/drafted/shape", ["seqs"])],
        ("program round", "buffer taken"),
        "no `tokens` output of several for each sequence to count",
    ),
    (
        "R-context",
        SPECULATIVE,
        [("replace", "/programs/prefill/batch/context", "seqs")],
        ("program prefill", "var seqs"),
        "`batch.context`, which sizes the call itself",
    ),
    (
        "R-one-context",
        SPECULATIVE,
        [
            ("add", "/vars/other", {"max": 8}),
            ("add", "/programs/decode/batch/context", "other"),
        ],
        ("program prefill", "program decode"),
        "has var `ctx` as `batch.context`, but program `decode` has `other`",
    ),
    (
        "R-callable",
        PAGED,
        [("replace", "/programs/decode_many/batch/groups", 1)],
        ("program decode_many", "program decode"),
        "calls of the same shape as program `decode`",
    ),
    (
        "R-hands-back",
        PAGED,
        [("remove", "/buffers/next/fill")],
        ("program decode", "program decode_many", "program prefill"),
        "no call hands a token back",
    ),
]


@pytest.mark.parametrize(
    ("rule", "base", "mutations", "objects", "words"),
    BROKEN,
    ids=[f"{row[0]}-{n}" for n, row in enumerate(BROKEN)],
)
def test_one_change_breaks_one_rule(rule, base, mutations, objects, words):
    found = [fault for fault in faults(base, *mutations) if fault.rule == rule]
    assert [fault.objects for fault in found][:1] == [objects]
    assert words in found[0].message
    assert all(f"`{name.split(' ', 1)[1]}`" in found[0].message for name in objects[:1])


def test_a_table_is_i32():
    wide = ("replace", "/buffers/pages/dtype", "i64")
    ops = [("replace", f"/ops/{op}/params/5", "in buffer<i64>") for op in ("feed", "step")]
    (fault,) = faults(PAGED, wide, *ops)
    assert (fault.rule, fault.path) == ("R-index", "/buffers/pages/dtype")
    assert fault.message == "buffer `pages` is a table over state `kv` of dtype i64, expected i32"


def test_an_error_word_is_i32():
    wide = ("replace", "/buffers/bad/dtype", "i64")
    program = json.loads(accepted_text(PEERS))["programs"]["step"]
    writers = {
        (call["op"], index)
        for call in program["calls"]
        for index, arg in enumerate(call["args"])
        if arg.get("buf") == "bad"
    }
    ops = [
        ("replace", f"/ops/{op}/{params}/{n}", "out buffer<i64>")
        for op, n in writers
        for params in ("params", "impl/launches/0/params")
    ]
    assert [fault.rule for fault in faults(PEERS, wide, *ops)] == ["R-element"]


def test_a_call_hands_back_one_tokens_output():
    both = ("replace", "/programs/decode/calls/0/args/7/buf", "drafted")
    second = ("add", "/programs/decode/calls/-", None)
    base = json.loads(accepted_text(SPECULATIVE))
    call = base["programs"]["decode"]["calls"][0]
    found = faults(SPECULATIVE, (second[0], second[1], call), both)
    assert [fault.rule for fault in found] == ["R-emits", "R-width"]
    assert "writes 2 `tokens` outputs (`drafted`, `next`)" in found[0].message


def test_a_manifest_for_a_harness_drives_nothing():
    (token, batch) = check_protocol(verify(parse_value(json.loads(accepted_text("02_impl")))))
    assert (token.rule, batch.rule) == ("R-token", "R-batch")


def test_every_rule_is_broken_by_some_test():
    tested = {row[0] for row in BROKEN} | {"R-index", "R-element", "R-emits", "R-batch"}
    assert {rule.id for rule in PROTOCOL_RULES} == tested
    assert all(rule.requires.endswith(".") for rule in PROTOCOL_RULES)


def test_every_protocol_and_cut_rule_is_documented():
    page = (Path(__file__).parents[2] / "docs" / "manifest.md").read_text()
    assert [rule.id for rule in (*PROTOCOL_RULES, *CUT_RULES) if f"| {rule.id} |" not in page] == []


def test_all_faults_come_at_once_and_protocol_raises_them():
    broken = changed(
        PAGED,
        ("replace", "/buffers/pos/shape", ["seqs"]),
        ("replace", "/programs/decode_many/batch/groups", 9),
    )
    assert [fault.rule for fault in check_protocol(broken)] == ["R-form", "R-groups"]
    with pytest.raises(ManifestError, match=r"(?s)does not fit the serving protocol:.*R-groups"):
        protocol(broken)


def test_a_caller_that_samples_needs_no_tokens_output():
    silent = ("remove", "/buffers/next/fill")
    assert faults(PAGED, silent, sampled=False) == []
    assert protocol(changed(PAGED, silent), sampled=False).step() is not None


def test_every_serving_fixture_fits():
    for name in (PAGED, RECURRENT, SPECULATIVE, PEERS, "08_shards", "16_uncut"):
        assert check(changed(name).manifest) == []
        assert faults(name) == []
