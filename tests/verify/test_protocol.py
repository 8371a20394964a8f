import json
from pathlib import Path

import pytest

from bedstone.errors import CallerError, ManifestError
from bedstone.spec.codec import parse_value
from bedstone.verify import check, verify
from bedstone.verify.cut import CUT_RULES, cut
from bedstone.verify.protocol import (
    PROTOCOL_RULES,
    AxisVar,
    LineTable,
    PageTable,
    Role,
    check_protocol,
    protocol,
)
from conformance_cases import accepted_text, patched

PAGED, RECURRENT, SPECULATIVE, PEERS = (
    "04_paged_serving",
    "05_recurrent",
    "06_speculative",
    "07_peers",
)


def changed(base, *mutations):
    """A verified manifest: an accepted one after `op path value` mutations."""
    steps = [
        {"op": op, "path": path, **({"value": value[0]} if value else {})}
        for op, path, *value in mutations
    ]
    return verify(parse_value(patched(json.loads(accepted_text(base)), steps)))


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


def test_the_stages_of_a_cut_carry_tokens_in_at_the_head_and_out_at_the_tail():
    head, tail = (protocol(changed(name)) for name in ("17_cut_stage0", "18_cut_stage1"))
    assert [role.fill for role in head.roles] == ["token", "seq_len", "slot"]
    assert [role.fill for role in tail.roles] == ["seq_len", "tokens", "slot"]
    assert head.arrives == ()
    assert tail.arrives == ("hidden",)
    assert tail.staged == ()


def test_a_stage_whose_calls_read_no_groups_var_is_bounded_by_its_programs():
    (head, *_) = cut(changed("16_uncut"), [1])
    contract = protocol(verify(head))
    assert (contract.rows, contract.groups) == (AxisVar("tokens", 16), AxisVar(None, 4))
    assert contract.call_vars(4, 4, longest=9) == {"tokens": 4}
    with pytest.raises(CallerError, match="`groups` is 5, expected 1 to 4"):
        contract.call_vars(5, 5, longest=9)


def test_paged_serving_reads_as_shapes_roles_and_tables():
    contract = protocol(changed(PAGED))
    assert (contract.rows, contract.groups) == (AxisVar("tokens", 64), AxisVar("seqs", 8))
    assert contract.role("token", "rows") == Role("ids", "token", "i64", "rows", 64)
    assert contract.role("token", "groups") is None
    assert contract.role("cu_seqlens") == Role("cu", "cu_seqlens", "i32", None, 9)
    assert contract.page_tables == (PageTable("pages", "kv", tokens=16, pages=4),)
    assert (contract.page_tokens, contract.reach) == (16, 64)
    assert contract.chunk is not None
    assert (contract.chunk.program, contract.chunk.emits) == ("prefill", None)
    assert [contract.step(n).program for n in (1, 2, 8)] == ["decode", "decode_many", "decode_many"]
    assert contract.step(9) is None
    assert contract.choose(1, 4) is None
    assert contract.shape("decode").graph
    assert contract.shape("decode").inputs == ("cu", "ids", "lens", "pages", "pos", "slots")


def test_a_speculative_round_has_an_anchor_a_width_and_a_count():
    contract = protocol(changed(SPECULATIVE))
    verify_round = contract.choose(3, 4)
    assert (verify_round.program, verify_round.emits.width, verify_round.count) == (
        "round",
        4,
        "taken",
    )
    assert contract.role("token", "groups").buffer == "anchor"
    assert contract.context == AxisVar("ctx", 4096)
    assert contract.reach == 64


def test_lines_of_a_recurrent_state_are_counted_from_its_slot():
    contract = protocol(changed(RECURRENT))
    assert contract.line_tables == (
        LineTable("lines", "rec", 16, lines_per_slot=3, lines=3, over="groups"),
        LineTable("wide", "rec", 16, lines_per_slot=3, lines=3, over="groups", width=2),
    )


def test_one_sequence_needs_no_second_dimension_in_a_line_table():
    alone = changed(
        RECURRENT,
        ("replace", "/buffers/lines/shape", [3]),
        ("replace", "/programs/decode_many/batch", {"groups": 1, "rows": 2}),
    )
    assert protocol(alone).line_tables[0].over is None


def test_a_page_is_whole_in_every_table():
    finer = {"dtype": "i32", "shape": ["seqs", 9], "kind": "input"}
    pages = finer | {"domain": {"index_into": "kv", "stride": 24}}
    op = {"add": "/ops/step/params/-", "arg": "/programs/{}/calls/0/args/-"}
    two = changed(
        PAGED,
        ("add", "/buffers/fine", pages),
        ("add", op["add"], "in buffer<i32>"),
        *(("add", op["arg"].format(p), {"buf": "fine"}) for p in ("decode", "decode_many")),
    )
    assert (protocol(two).page_tokens, protocol(two).reach) == (48, 64)


def test_ranks_rows_are_the_groups_whole_batch():
    contract = protocol(changed(PEERS))
    assert contract.ranks == AxisVar("all", 32)
    assert contract.once == ("setup",)
    assert contract.shapes[0].error == "bad"
    assert contract.call_vars(3, 3, longest=9)["all"] == 3
    assert contract.call_vars(3, 3, longest=9, batch_rows=7) == {"tokens": 3, "seqs": 3, "all": 7}


@pytest.mark.parametrize(
    ("rows", "groups", "longest", "words"),
    [(65, 1, 1, "`tokens` is 65, expected 1 to 64"), (1, 0, 1, "`seqs` is 0"), (1, 1, 4097, "ctx")],
)
def test_vars_of_a_call_stay_within_what_is_declared(rows, groups, longest, words):
    contract = protocol(changed(SPECULATIVE))
    assert contract.call_vars(64, 8, longest=4096) == {"tokens": 64, "seqs": 8, "ctx": 4096}
    with pytest.raises(CallerError, match=words):
        contract.call_vars(rows, groups, longest=longest)


def test_an_input_that_no_role_or_table_covers_is_staged_by_name():
    assert protocol(changed(PAGED, ("remove", "/buffers/pos/fill"))).staged == ("pos",)


# --- chains --------------------------------------------------------------------------------------

CARRIES = {
    "fed": {"dtype": "i64", "shape": ["seqs"], "kind": "carry"},
    "run": {"dtype": "i32", "shape": [64], "kind": "inout"},
}
LAUNCH = {"module": "k", "entry": "e", "block": [1, 1, 1], "grid": [1, 1, 1]}


def chained(reads=(), **program):
    """The paged manifest with a program that feeds itself from the carry `fed`."""
    names = ["fed", "pages", *reads]
    dtypes = {"fed": "i64", "ids": "i64", "pages": "i32", "loose": "i32"}
    onward = {
        "params": [
            *(f"in buffer<{dtypes[name]}>" for name in names),
            "inout state",
            "out buffer<i64>",
            "out buffer<i64>",
            "inout buffer<i32>",
        ],
        "impl": {"launches": [LAUNCH]},
    }
    args = [{"buf": name} for name in names]
    args += [{"state": "kv"}, {"buf": "next"}, {"buf": "fed"}, {"buf": "run"}]
    seed = {"op": "seed", "args": [{"buf": "fed"}]}
    return changed(
        PAGED,
        *(("add", f"/buffers/{name}", buffer) for name, buffer in CARRIES.items()),
        *(
            ("add", f"/buffers/{n}", {"dtype": "i32", "shape": [1], "kind": "input"})
            for n in reads
            if n == "loose"
        ),
        ("add", "/ops/seed", {"params": ["out buffer<i64>"], "impl": {"launches": [LAUNCH]}}),
        ("add", "/ops/onward", onward),
        ("add", "/programs/decode/calls/-", seed),
        ("add", "/programs/on", {"calls": [{"op": "onward", "args": args}], **program}),
    )


def test_a_program_that_feeds_itself_is_a_chain_after_those_that_seed_it():
    (chain,) = protocol(chained()).chains
    assert (chain.program, chain.emits.buffer, chain.error) == ("on", "next", None)
    assert chain.tables == ("pages",)
    assert chain.advances == ("fed",)
    assert chain.kept == ("run",)
    assert chain.seeds == ("decode",)


@pytest.mark.parametrize(
    ("told", "sequences", "chains"),
    [
        ((), 1, ["on"]),
        ((), 2, []),
        (("decode", "on"), 2, ["on"]),
        (("decode",), 2, []),
        (("on",), 2, []),
        (("on",), 1, ["on"]),
    ],
)
def test_a_chain_goes_on_from_a_call_that_is_told_as_much(told, sequences, chains):
    read = protocol(chained())
    count = read.groups.name
    assert count is not None
    (shape,) = (s for s in read.shapes if s.program == "decode")
    found = read.follow(shape, sequences, lambda program: [count] if program in told else [])
    assert [chain.program for chain in found] == chains


@pytest.mark.parametrize("name", ["ids", "loose"])
def test_a_program_that_reads_an_input_of_each_call_is_no_chain(name):
    assert protocol(chained(reads=[name])).chains == ()


@pytest.mark.parametrize("driving", [{"batch": {"groups": 2, "rows": 2}}, {"once": True}])
def test_a_program_run_by_a_loop_or_at_load_is_no_chain(driving):
    assert protocol(chained(**driving)).chains == ()


def test_every_serving_fixture_fits():
    for name in (PAGED, RECURRENT, SPECULATIVE, PEERS, "08_shards", "16_uncut"):
        assert check(changed(name).manifest) == []
        assert faults(name) == []
