"""What launches touch follows from their fields."""

from bedstone.graph.step import AtParam
from bedstone.lane.launch import (
    GemmPart,
    Matrix,
    Norm,
    Parts,
    Read,
    ToBuf,
    ToRows,
    ToScratch,
)
from bedstone.lane.touch import Touch, reads_of, touches

M = Matrix("w", "q8_0", 32, 32)


def test_a_norm_of_a_sum_reads_two_and_writes_two() -> None:
    launch = Norm(
        Read("x"), "w", 1, 32, 32, 1e-5, False, ToBuf("n", f32=False, quant=True),
        add=Read("d"), sum=ToBuf("s"),
    )  # fmt: skip
    assert set(touches(launch)) == {
        Touch("x", "f32", write=False),
        Touch("d", "f32", write=False),
        Touch("s", "f32", write=True),
        Touch("n", "quant", write=True),
    }


def test_parts_touch_where_each_part_goes() -> None:
    rows = ToRows("V", AtParam("pos"), "V@1")
    scratch = ToScratch("S", 1, "S@2", quant=True)
    launch = Parts(Read("n", "quant"), 1, (GemmPart(M, scratch), GemmPart(M, rows)))
    assert reads_of(launch) == (Read("n", "quant"),)
    assert touches(launch) == (
        Touch("n", "quant", write=False),
        Touch("S@2", "f32", write=True),
        Touch("S@2", "quant", write=True),
        Touch("V@1", "f32", write=True),
    )
