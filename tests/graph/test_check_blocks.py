"""The checker on ops of mixtures, recurrences and latents: one broken field is one problem."""

from typing import get_args

import pytest

from bedstone.graph.check import check
from bedstone.graph.parse import parse
from bedstone.graph.refs import reads, table_write, writes
from bedstone.graph.step import Op, Value
from bedstone.graph.text import emit
from graph_texts import BLOCKS, LEGAL


def found(text: str) -> list[tuple[str, str, str]]:
    return [(p.rule, p.where, p.message) for p in check(parse(text))]


def test_a_graph_of_blocks_has_no_problem() -> None:
    assert found(BLOCKS) == []


def test_every_op_stands_in_a_legal_graph() -> None:
    ops = {type(op) for text in (LEGAL, BLOCKS) for op in parse(text).ops}
    assert ops == set(get_args(Op))


def test_blocks_read_back_to_the_same_text() -> None:
    assert emit(parse(BLOCKS)) == BLOCKS


def test_shapes_of_blocks() -> None:
    values = parse(BLOCKS).values
    assert values["ids"] == Value(3, 2, "i32")
    assert values["xup"] == Value(3, 10, units=2)
    assert values["mixed"] == Value(3, 12)
    assert values["k"] == Value(3, 6, units=2)
    assert values["y"] == Value(3, 8, units=4)
    assert values["state@1"] == Value(12, 2)
    assert values["ring@1"] == Value(2, 12)
    assert values["keys"] == Value(16, 18, units=3)
    assert values["back"] == Value(3, 12, units=3)


def test_an_op_may_make_a_result_and_a_version() -> None:
    made = {op.out: op for op in parse(BLOCKS).ops}
    assert writes(made["y"]) == ("y", "state@1")
    assert reads(made["y"]) == ("q", "k", "v", "g", "a", "state")
    assert table_write(made["y"]) == ("state", "state@1")
    assert table_write(made["conv"]) == ("ring", "ring@1")
    assert table_write(made["kv@2"]) == ("kv@1", "kv@2")
    assert table_write(made["own"]) is None


BROKEN = [
    ("fn=sigmoid", "fn=tanh", "score", "function `tanh` is none of"),
    ("k=2, bias=bias", "k=0, bias=bias", "ids", "chooses 0 experts"),
    ("k=2, bias=bias", "k=5, bias=bias", "ids", "chooses 5 of 4 experts"),
    ("k=2, bias=bias", "k=2, bias=rate", "ids", "`rate` hold 4 values, not 6"),
    ("groups=3, group_k", "groups=4, group_k", "ids", "6 experts are not 4 groups"),
    ("group_k=2", "group_k=4", "ids", "keeps 4 of 3 groups"),
    ("group_best=2", "group_best=3", "ids", "judges a group of 2 by 3 experts"),
    ("factor=2.5", "factor=0.0", "weights", "factor 0.0 is not positive"),
    ("x=score, ids=ids", "x=score, ids=x", "weights", "`x` holds no ids of 3 rows"),
    ("ids=ids, w=up", "ids=ids, w=gate", "xup", "`gate` is no constant stack"),
    ("w=up, experts=6", "w=up, experts=5", "xup", "has 6 matrices for 5 experts"),
    ("x=xup, ids=ids", "x=x, ids=ids", "xdown", "hold 12 values, not 5 or 2 times"),
    ("x=xdown, w=weights", "x=xdown, w=xup", "mixed", "24 values are not 10 units"),
    ("x=mixed, w=taps", "x=xdown, w=taps", "conv", "taps for 12 channels, not 24"),
    ("width=12, zeros=true", "width=12", "conv", "`ring` is no table that begins with zeros"),
    ("capacity=2, width=12", "capacity=2, width=11", "conv", "[2, 11], not [2, 12]"),
    ("eps=1e-06, unit=3", "eps=-1.0, unit=3", "unit", "eps -1.0 is neither"),
    ("eps=1e-06, unit=3", "eps=1e-06, unit=5", "unit", "units of 5 do not divide 12"),
    ("offset=3, width=3, units=2", "offset=4, width=3, units=2", "k", "not lie within units"),
    ("pitch=8, offset=4", "pitch=8, offset=5", "v", "lie outside 12 values"),
    ("pitch=8, offset=4", "pitch=8, offset=-1", "v", "takes 1 windows of 8 at -1"),
    ("a_log=rate", "a_log=bias", "g", "rows of `bias` hold 6 values, not 4"),
    ("heads=4, dk=3", "heads=3, dk=3", "y", "3 heads do not divide over 2"),
    ("dk=3, dv=2", "dk=3, dv=0", "y", "values 0 wide"),
    ("beta=a", "beta=x", "y", "`x` is [3, 12], not [3, 4]"),
    ("width=2, zeros=true", "width=2", "y", "begins with zeros"),
    ("capacity=12, width=2", "capacity=11, width=2", "y", "[11, 2], not [12, 2]"),
    ("dv=2, scale=0.5", "dv=2, scale=-0.5", "y", "scale -0.5 is not positive"),
    (
        "ql = hlinear(x=x, w=heads, heads=3)",
        "ql = hlinear(x=x, w=heads, heads=2)",
        "ql",
        "3 matrices for 2",
    ),
    ("x=x, w=heads", "x=x, w=square", "ql", "`square` is no constant stack"),
    ("heads=3, transposed=true", "heads=3", "back", "rows of `ql` hold 6 values, not 12"),
    ("kind=pair, offset=2", "kind=pair, offset=3", "qt", "turns 2 values at 3 of a head"),
    ("kind=pair, offset=2", "kind=pair, offset=-1", "qt", "turns 2 values at -1"),
    ("b=ql, units=3", "b=ql, units=4", "qq", "12 and 6 values are not 4 units"),
    ("a=qt, b=ql", "a=qt, b=kv", "qq", "`qt` has 3 rows but `kv` has 16"),
    ("column=4", "column=5", "kv@1", "columns 5 to 11 lie outside 10"),
    ("column=0", "column=-1", "kv@2", "columns -1 to 3 lie outside 10"),
    (", column=0", "", "kv@2", "rows of `c` hold 4 values, not 10"),
    ("k=keys, v=wide", "k=qq, v=wide", "att", "`qq` is no table, and made of none"),
    ("k=keys, v=wide", "k=keys, v=qt", "att", "`qt` is no table, and made of none"),
    ("dk=10, dv=4", "dk=10, dv=11", "own", "reads values 11 wide from keys 10"),
    ("finish(x=drawn)", "argmax(x=last)", "blocks", "draws 1 times and closes with nothing"),
    ("drawn = sample", "more = sample(x=last)\ndrawn = sample", "blocks", "draws 2 times"),
    ("next = finish(x=drawn)", "next = finish(x=drawn)\nz = add(a=s, b=s)", "next", "`z` follows"),
]


@pytest.mark.parametrize(("old", "new", "where", "message"), BROKEN)
def test_one_broken_field_is_one_problem(old: str, new: str, where: str, message: str) -> None:
    assert BLOCKS.count(old) == 1
    problems = found(BLOCKS.replace(old, new))
    assert [w for _, w, _ in problems] == [where]
    assert message in problems[0][2]


def test_a_state_read_after_its_step_is_the_newer_version() -> None:
    stale = BLOCKS.replace("ql = hlinear", "again = row(x=state, at=fixed(row=0))\nql = hlinear")
    assert found(stale) == [
        ("version", "again", "reads `state` after `state@1` overwrote its rows")
    ]
