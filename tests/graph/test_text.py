"""The text form: what is written reads back the same, exactly."""

import dataclasses

import pytest

from bedstone.errors import CallerError
from bedstone.graph.infer import with_values
from bedstone.graph.parse import parse
from bedstone.graph.refs import reads, rename, writes
from bedstone.graph.step import (
    Linear,
    Out,
    Ref,
    RopeTable,
    Scale,
    Value,
)
from bedstone.graph.text import emit, emit_op

TINY = """\
graph(model=tiny, form=decode, rows=1, params=(pos,), outputs=(logits, next))
embed.weight = const(format=f32, shape=(8, 4))
n.weight = const(format=f32, shape=(4,))
k.0 = table(capacity=16, width=4)
v.0 = table(capacity=16, width=4)
token = carried(rows=1)
rope = ropetable(inv_freq=(1.0, 0.01))
x = embed(ids=token, table=embed.weight)
n = norm(x=x, w=n.weight, eps=1e-05, unit=4)
r = rope(x=n, rope=rope, pos=pos, heads=1, head_dim=4, rot=4, kind=neox)
k.0@1 = set(table=k.0, x=r, at=atparam(param=pos))
v.0@1 = set(table=v.0, x=n, at=atparam(param=pos))
a = attention(q=r, k=k.0@1, v=v.0@1, pos=pos, heads=1, groups=1, dk=4, dv=4, scale=0.5, window=3)
h = add(a=x, b=a)
logits = linear(x=h, w=embed.weight)
next = argmax(x=logits)
"""


def test_text_reads_back_to_the_same_text() -> None:
    assert emit(parse(TINY)) == TINY


def test_a_graph_reads_back_to_the_same_graph() -> None:
    graph = parse(TINY)
    assert parse(emit(graph)) == graph


def test_values_are_inferred_when_text_is_read() -> None:
    values = parse(TINY).values
    assert values["r"] == Value(1, 4, units=1)
    assert values["logits"] == Value(1, 8)
    assert values["next"] == Value(1, 1, "i32")
    assert values["k.0@1"] == Value(16, 4)


def test_comments_and_blank_lines_are_skipped() -> None:
    assert parse("# a comment\n\n" + TINY) == parse(TINY)


@pytest.mark.parametrize("by", [0.1, 1e-45, -1.5e300, float("inf"), 1.0, 12345678.9])
def test_numbers_read_back_exactly(by: float) -> None:
    base = parse(TINY)
    scaled = with_values(dataclasses.replace(base, ops=(*base.ops, Scale(Ref("x"), Out("s"), by))))
    assert parse(emit(scaled)) == scaled


@pytest.mark.parametrize("name", ["none", "true", "1.5", "a b", 'q"uote', "inf", "é,"])
def test_names_that_look_like_something_else_read_back(name: str) -> None:
    table = RopeTable(name, (1.0,))
    graph = dataclasses.replace(parse(TINY), ropes={name: table})
    assert parse(emit(graph)).ropes == {name: table}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("y = warp(x=x)", "line 17: `warp` is no op"),
        ("y = scale(x=x)", "`scale` has a field `by` unset"),
        ("y = scale(x=x, by=2, of=3)", "`scale` has no field `of`"),
        ("y = scale(x=x, by=2", "expected `,`, found `the end`"),
        ("y = scale(x=x, by=)", "expected a value, found `)`"),
        ("y = scale(x=x, by=2) z", "expected `the end`, found `z`"),
        ("y = scale(x=x, by=$)", "`$)` is no token"),
        ("fixed(row=1)", "`fixed` makes no line"),
        ("graph(model=m, form=decode, rows=1)", "`graph` makes no line"),
        ("y =", "`` is no op"),
        ("y", "`y` is no op"),
        ("y = scale", "expected `(`, found `the end`"),
    ],
)
def test_a_line_that_does_not_parse_is_named(line: str, message: str) -> None:
    with pytest.raises(CallerError, match="graph text: line 17") as error:
        parse(TINY + line)
    assert message in str(error.value)


def test_text_begins_with_the_graph() -> None:
    with pytest.raises(CallerError, match="line 1: `const` makes no line"):
        parse(TINY.split("\n", 1)[1])
    with pytest.raises(CallerError, match="holds no graph"):
        parse("# nothing\n")


@dataclasses.dataclass(frozen=True, slots=True)
class Piece:
    m: Ref
    bias: Ref | None
    out: Out
    n: int


@dataclasses.dataclass(frozen=True, slots=True)
class Rows:
    table: Ref
    out: Out


@dataclasses.dataclass(frozen=True, slots=True)
class Buffer:
    kind: str


@dataclasses.dataclass(frozen=True, slots=True)
class Joined:
    """An op class of another package: names in tuples, unions and nested classes."""

    x: Ref
    pieces: tuple[Piece, ...]
    dst: Buffer | Rows | None
    pair: tuple[str, Ref]
    label: str
    extra: Out | None = None


JOINED = Joined(
    Ref("x"),
    (Piece(Ref("a"), Ref("b"), Out("o1"), 1), Piece(Ref("c"), None, Out("o2"), 2)),
    Rows(Ref("t"), Out("t1")),
    ("x", Ref("y")),
    "x",
)


def test_reads_and_writes_follow_from_field_types() -> None:
    assert reads(JOINED) == ("x", "a", "b", "c", "t", "y")
    assert writes(JOINED) == ("o1", "o2", "t1")
    assert reads(dataclasses.replace(JOINED, dst=Buffer("x"))) == ("x", "a", "b", "c", "y")
    assert writes(dataclasses.replace(JOINED, dst=None, extra=Out("e"))) == ("o1", "o2", "e")


def test_a_name_read_twice_is_named_twice() -> None:
    assert reads(Linear(Ref("x"), Ref("x"), Out("y"))) == ("x", "x")


def test_rename_leaves_other_strings_alone() -> None:
    new = rename(JOINED, {"x": "X", "c": "C", "o2": "O", "t": "T", "t1": "U"})
    assert reads(new) == ("X", "a", "b", "C", "T", "y")
    assert writes(new) == ("o1", "O", "U")
    assert (new.pair[0], new.label) == ("x", "x")
    assert rename(JOINED, {}) == JOINED


def test_an_op_of_another_package_is_one_line() -> None:
    assert emit_op(JOINED) == (
        "joined(x=x, pieces=(piece(m=a, bias=b, out=o1, n=1), piece(m=c, bias=none, out=o2, n=2)), "
        "dst=rows(table=t, out=t1), pair=(x, y), label=x)"
    )
