"""Rows at a literal index: views wherever the table stays as it is, copies where it does not."""

import pytest

from bedstone.graph.parse import parse
from bedstone.graph.step import StepGraph
from bedstone.lane.launch import Quantize, Read, SetRows, TakeRow, ToScratch
from bedstone.library.coding import BF16, INT8
from lane_graphs import LLAMA, assert_computes, graph_of, kinds, lowered

TEXT = """\
graph(model=t, form=batch, rows=2, params=(pos.0, pos.1), outputs=(logits, next))
E = const(format=q8_0, shape=(96, 64))
W = const(format=q8_0, shape=(64, 64))
S = table(capacity=2, width=64, scratch=true)
token = carried(rows=2)
x = embed(ids=token, table=E)
{body}
logits = linear(x={out}, w=E)
next = argmax(x=logits)
"""


def graph(*body: str, out: str = "S@2") -> StepGraph:
    return parse(TEXT.format(body="\n".join(body), out=out))


A, B = "a = row(x=x, at=fixed(row=0))", "b = row(x=x, at=fixed(row=1))"
FIRST = "S@1 = set(table=S, x=a, at=fixed(row=0))"
SECOND = "S@2 = set(table=S@1, x=b, at=fixed(row=1))"
TAKE = "r = row(x=S@1, at=fixed(row=0))"


def test_a_row_of_a_value_is_a_view() -> None:
    schedule = lowered(graph(A, B, FIRST, SECOND))
    view = schedule.buffers["b"]
    assert (view.view_of, view.offset, view.f32) == ("x", 64, None)
    assert kinds(schedule)["set_rows"] == 1
    assert_computes(schedule, graph(A, B, FIRST, SECOND))


def test_a_row_read_before_its_table_changes_is_a_view() -> None:
    step = graph(
        A, B, FIRST, TAKE, "c = linear(x=r, w=W)", "S@2 = set(table=S@1, x=c, at=fixed(row=1))"
    )  # fmt: skip
    schedule = lowered(step, held=("linear_set",))
    assert schedule.buffers["r"].view_of == "S"
    assert_computes(schedule, step)


@pytest.mark.parametrize(
    "later",
    [
        ("c = linear(x=r, w=W)", "S@3 = set(table=S@2, x=c, at=fixed(row=0))"),
        ("S@3 = set(table=S@2, x=r, at=fixed(row=1))",),
    ],
    ids=["a product", "a set"],
)
def test_a_row_read_after_its_table_changed_is_copied(later: tuple[str, ...]) -> None:
    step = graph(A, B, FIRST, TAKE, SECOND, *later, out="S@3")
    schedule = lowered(step)
    (copy,) = [
        s.launch for s in schedule.steps
        if isinstance(s.launch, TakeRow) and s.launch.x == Read("S@1", row=0)
    ]  # fmt: skip
    assert copy.rows == 1
    assert schedule.buffers["r"].view_of is None
    assert_computes(schedule, step)


def test_the_set_that_a_row_feeds_may_not_write_under_it() -> None:
    """The launch that overwrites a row's table counts as later, even where it reads the row."""
    step = graph(A, B, FIRST, TAKE, "S@2 = set(table=S@1, x=r, at=fixed(row=1))")
    schedule = lowered(step)
    assert schedule.buffers["r"].view_of is None
    assert_computes(schedule, step)


def test_a_row_of_a_row_keeps_to_the_memory_of_both() -> None:
    step = graph(
        A, B, FIRST, TAKE, "rr = row(x=r, at=fixed(row=0))", SECOND,
        "S@3 = set(table=S@2, x=rr, at=fixed(row=1))", out="S@3",
    )  # fmt: skip
    schedule = lowered(step)
    assert schedule.buffers["r"].view_of is None
    assert_computes(schedule, step)


def test_a_set_into_scratch_is_a_row_copied_in_place() -> None:
    schedule = lowered(graph(A, B, FIRST, SECOND), held=("sequences",))
    rows = [s.launch for s in schedule.steps if isinstance(s.launch, SetRows)]
    assert [launch.dst for launch in rows] == [
        ToScratch("S", 0, "S@1"),
        ToScratch("S", 1, "S@2"),
    ]


def test_a_view_is_quantized_where_its_tensor_is() -> None:
    """The products of two rows and of the whole read one quantized form."""
    step = graph(
        A, B, "c = linear(x=a, w=W)", "d = linear(x=b, w=W)",
        "S@1 = set(table=S, x=c, at=fixed(row=0))", "S@2 = set(table=S@1, x=d, at=fixed(row=1))",
        "e = linear(x=x, w=W)", "y = add(a=e, b=S@2)", out="y",
    )  # fmt: skip
    schedule = lowered(step, "quantized")
    assert schedule.buffers["b"].quant is None
    assert schedule.buffers["x"].quant is not None
    assert kinds(schedule)["quantize"] == 2
    assert_computes(schedule, step, "quantized")


def test_only_a_view_on_a_whole_block_is_quantized_in_place() -> None:
    assert INT8.whole(0)
    assert INT8.whole(96, 32)
    assert not INT8.whole(96, 48)
    assert BF16.whole(48, 8)
    assert not BF16.whole(4)


def test_a_batch_takes_no_launch_for_its_rows() -> None:
    schedule = lowered(graph_of(LLAMA, "batch"), "quantized")
    assert "take_row" not in kinds(schedule)
    view = schedule.buffers["l0.q.2"]
    assert (view.view_of, view.offset) == ("l0.q", 128)
    rows = schedule.buffers["l0.rows"]
    assert rows.f32 is None
    assert rows.quant is not None


def test_a_part_that_a_caller_takes_is_copied() -> None:
    body = "c = concat(a=x, b=x, units=2)\np = part(x=c, pitch=64, offset=32, width=32, units=2)"
    text = TEXT.format(body=body, out="p").replace(
        "outputs=(logits, next)", "outputs=(p, logits, next)"
    )
    step = parse(text)
    schedule = lowered(step)
    assert schedule.buffers["p"].view_of is None
    assert_computes(schedule, step)


def test_a_part_quantized_for_one_reader_is_read_so_by_all() -> None:
    """A product of heads could follow the part in its tensor's codes; a plain product cannot."""
    body = (
        "c = concat(a=x, b=x, units=2)\np = part(x=c, pitch=64, offset=32, width=32, units=2)\n"
        "h = hlinear(x=p, w=H, heads=2)\nl = linear(x=p, w=W)\ny = add(a=h, b=l)"
    )
    text = TEXT.format(body=body, out="y").replace(
        "token = ", "H = const(format=q8_0, shape=(2, 32, 32))\ntoken = "
    )
    step = parse(text)
    schedule = lowered(step, "quantized")
    assert schedule.buffers["p"].quant is not None
    made = [s.launch.dst for s in schedule.steps if isinstance(s.launch, Quantize)]
    assert [dst.tensor for dst in made] == ["p", "y"]
    assert_computes(schedule, step, "quantized")
