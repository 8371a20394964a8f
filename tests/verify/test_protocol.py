"""What the serving protocol reads off a manifest: shapes, roles, tables and chains."""

import pytest

from bedstone.errors import CallerError
from bedstone.verify import verify
from bedstone.verify.cut import cut
from bedstone.verify.protocol import AxisVar, LineTable, PageTable, Role, protocol
from calls_toy import Calls, calls_manifest
from serving_manifests import PAGED, PEERS, RECURRENT, SPECULATIVE, changed


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


def test_rounds_are_told_apart_by_the_rows_that_they_take():
    contract = protocol(changed(SPECULATIVE))
    assert contract.rounds == (4,)
    assert [shape.program for shape in contract.shapes if shape.is_round] == ["round"]
    assert [s.program for s in contract.shapes if s.is_step] == ["decode", "decode_many"]
    assert protocol(changed(PAGED)).rounds == ()


@pytest.mark.parametrize(("reads", "told"), [(["tokens"], True), (["seqs"], True), ([], False)])
def test_a_program_is_told_its_sequences_by_either_of_two_vars(reads, told):
    assert protocol(changed(PAGED)).told("decode_many", lambda _: reads) is told


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


def test_a_round_is_followed_by_rounds_and_a_row_by_rows():
    calls = Calls(rounds=(4,), steps=(4,), chains=True)
    read = protocol(verify(calls_manifest("0" * 64, calls)))
    for name in ("step.1.4", "step.4.4"):
        (chain,) = read.follow(read.shape(name), 2, lambda _: ["seqs"])
        assert chain.program == f"{name}.on"
    assert [chain.count for chain in read.chains] == [None, "taken"]
    assert [chain.rows for chain in read.chains] == [1, 4]
    (after_prompt,) = read.follow(read.shape("chunk"), 1, lambda _: ["seqs"])
    assert after_prompt.rows == 1


@pytest.mark.parametrize("name", ["ids", "loose"])
def test_a_program_that_reads_an_input_of_each_call_is_no_chain(name):
    assert protocol(chained(reads=[name])).chains == ()


@pytest.mark.parametrize("driving", [{"batch": {"groups": 2, "rows": 2}}, {"once": True}])
def test_a_program_run_by_a_loop_or_at_load_is_no_chain(driving):
    assert protocol(chained(**driving)).chains == ()
