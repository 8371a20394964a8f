"""Weight plans against slices of NumPy matrices."""

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedstone.checkpoint.tensors import TensorInfo
from bedstone.errors import WeightError
from bedstone.runtime.cpu.device import CpuDevice
from bedstone.runtime.device import Stored
from bedstone.runtime.weights import plan_weights, uploads
from bedstone.spec.dtype import DTYPE_BYTES, FORMATS
from bedstone.spec.manifest import Buffer, Interleave, RankedRanges, RankedTensors, Segment


@dataclass
class Store:
    """Tensors with made-up bytes."""

    tensors: dict = field(default_factory=dict)
    data: dict = field(default_factory=dict)

    def add(self, name, format_, shape, data=None):
        form = FORMATS[format_]
        nbytes = math.prod(shape) // form.block * form.block_bytes
        if data is None:
            data = np.random.default_rng(len(self.tensors)).integers(0, 256, nbytes, np.uint8)
        self.data[name] = data.view(np.uint8).reshape(-1)
        self.tensors[name] = TensorInfo(name, format_, tuple(shape), Path("w"), 0, nbytes)

    def raw(self, info):
        return self.data[info.name]

    def matrix(self, name):
        """The tensor as elements of bytes [rows, cols, element]."""
        info = self.tensors[name]
        item = DTYPE_BYTES[FORMATS[info.format].dtype]
        rows = info.shape[0] if len(info.shape) > 1 else 1
        return self.data[name].reshape(rows, -1, item)


@pytest.fixture(scope="module")
def device(cache):
    device = CpuDevice(cache, 1)
    yield device
    device.close()


def bound(store, dtype, nbytes, *segments, ranks=None):
    buffer = Buffer(dtype, (nbytes // DTYPE_BYTES[dtype],), "weight", bind=segments)
    return plan_weights({"w": (buffer, nbytes)}, store.tensors, ranks or {})["w"]


def contents(store, device, plan):
    memory = device.allocate(plan.nbytes)
    device.write(memory.address, np.full(plan.nbytes, 0xA5, np.uint8))
    told = []
    copies = uploads(plan, memory.address, lambda name: Stored(store.data[name]))
    device.upload(tuple(copies), told.append).wait()
    assert told == sorted(told)
    assert told[-1:] in ([], [plan.nbytes])
    return device.read(memory.address, plan.nbytes)


def picked(choice, index):
    return choice.tensors[index] if isinstance(choice, RankedTensors) else choice


def oracle(store, segments, rank):
    """The bytes of the segments laid end to end."""
    pieces = []
    for segment in segments:
        matrix = store.matrix(picked(segment.tensor, rank))
        if segment.interleave is not None:
            n = segment.interleave.rows
            other = store.matrix(picked(segment.interleave.with_, rank))
            blocks = [m.reshape(-1, n, *m.shape[1:]) for m in (matrix, other)]
            pieces.append(np.stack(blocks, 1))
            continue
        for axis, choice in enumerate((segment.rows, segment.cols)):
            ranges = choice.ranges[rank] if isinstance(choice, RankedRanges) else choice
            if ranges is not None:
                matrix = np.take(matrix, range(*ranges), axis)
        pieces.append(matrix)
    return np.concatenate([piece.reshape(-1) for piece in pieces])


@st.composite
def plans(draw):
    """A store and segments over it that one buffer can hold, for two ranks."""
    dtype = draw(st.sampled_from(["f32", "bf16", "u8"]))
    formats = [f for f in FORMATS.values() if f.dtype == dtype]
    store, shapes = Store(), {}
    for index in range(draw(st.integers(2, 4))):
        form = draw(st.sampled_from(formats))
        inner = form.block * draw(st.integers(1, 3))
        shape = [*draw(st.lists(st.integers(1, 4), max_size=2)), inner]
        store.add(f"t{index}", form.name, shape)
        shapes[f"t{index}"] = store.matrix(f"t{index}").shape[:2]
    segments = tuple(draw(segment(shapes)) for _ in range(draw(st.integers(1, 3))))
    return store, dtype, segments


@st.composite
def segment(draw, shapes):
    name = draw(st.sampled_from(sorted(shapes)))
    same = [other for other in sorted(shapes) if shapes[other] == shapes[name]]
    rows, cols = shapes[name]
    tensor = name
    if draw(st.booleans()):
        tensor = RankedTensors("tp", (name, draw(st.sampled_from(same))))
    if draw(st.booleans()):
        height = draw(st.sampled_from([n for n in range(1, rows + 1) if rows % n == 0]))
        return Segment(tensor, interleave=Interleave(draw(st.sampled_from(same)), height))
    return Segment(tensor, draw(ranges(rows)), draw(ranges(cols)))


@st.composite
def ranges(draw, extent):
    pairs = st.tuples(st.integers(0, extent - 1), st.integers(1, extent)).map(
        lambda pair: (min(pair[0], pair[1] - 1), max(pair[0] + 1, pair[1]))
    )
    kind = draw(st.sampled_from(["none", "fixed", "ranked"]))
    if kind == "none":
        return None
    if kind == "fixed":
        return draw(pairs)
    return RankedRanges("tp", (draw(pairs), draw(pairs)))


@settings(max_examples=150)
@given(plans(), st.integers(0, 1))
def test_any_plan_lays_what_slices_lay(device, drawn, rank):
    store, dtype, segments = drawn
    want = oracle(store, segments, rank)
    plan = bound(store, dtype, want.size, *segments, ranks={"tp": rank})
    assert np.array_equal(contents(store, device, plan), want)


def f32(*values):
    return np.array(values, np.float32)


def sliced(device, store, nbytes, rank, *segments):
    plan = bound(store, "f32", nbytes, *segments, ranks={"tp": rank})
    return contents(store, device, plan).view(np.float32).tolist()


def test_b14_fused_qkv_is_cut_part_by_part(device):
    store = Store()
    store.add("qkv", "f32", (8, 1), f32(*range(8)))
    parts = [((0, 2), (2, 4)), ((4, 5), (5, 6)), ((6, 7), (7, 8))]
    segments = [Segment("qkv", rows=RankedRanges("tp", pairs)) for pairs in parts]
    assert sliced(device, store, 16, 0, *segments) == [0, 1, 4, 6]
    assert sliced(device, store, 16, 1, *segments) == [2, 3, 5, 7]


def test_b15_fused_gate_and_up_are_cut_each_on_its_own(device):
    store = Store()
    store.add("gate_up", "f32", (8, 1), f32(0, 1, 2, 3, 10, 11, 12, 13))
    parts = [((0, 2), (2, 4)), ((4, 6), (6, 8))]
    segments = [Segment("gate_up", rows=RankedRanges("tp", pairs)) for pairs in parts]
    ranks = [sliced(device, store, 16, rank, *segments) for rank in range(2)]
    assert ranks == [[0, 1, 10, 11], [2, 3, 12, 13]]
    halves = [[rank[:2] for rank in ranks], [rank[2:] for rank in ranks]]
    whole = np.concatenate([piece for half in halves for piece in half])
    assert whole.tolist() == [0, 1, 2, 3, 10, 11, 12, 13]


def test_b16_ranks_share_a_kv_head_where_there_are_more_ranks(device):
    store = Store()
    store.add("k", "f32", (2, 3), f32(0, 0, 0, 1, 1, 1))
    tp, heads = 4, 2
    table = tuple((rank * heads // tp, rank * heads // tp + 1) for rank in range(tp))
    segment_ = Segment("k", rows=RankedRanges("tp", table))
    found = [sliced(device, store, 12, rank, segment_) for rank in range(tp)]
    assert found == [[0] * 3, [0] * 3, [1] * 3, [1] * 3]


def test_ranked_tensors_take_this_rank_s_name(device):
    store = Store()
    store.add("a", "f32", (1, 2), f32(1, 2))
    store.add("b", "f32", (1, 2), f32(3, 4))
    named = Segment(RankedTensors("tp", ("a", "b")))
    assert [sliced(device, store, 8, rank, named) for rank in range(2)] == [[1, 2], [3, 4]]


def test_rows_without_gaps_are_one_run():
    store = Store()
    store.add("a", "f32", (4, 3))
    assert bound(store, "f32", 48, Segment("a")).run.width == 48
    assert bound(store, "f32", 24, Segment("a", rows=(1, 3))).run.source == 12
    assert bound(store, "f32", 16, Segment("a", cols=(0, 1))).run is None
    assert bound(store, "f32", 96, Segment("a"), Segment("a")).run is None


def test_a_scalar_is_one_element(device):
    store = Store()
    store.add("s", "f32", (), f32(7))
    assert sliced(device, store, 4, 0, Segment("s")) == [7]


FAULTS = [
    (
        16,
        [Segment("absent")],
        r"weight `w` bind\[0\] \(`absent`\): tensor `absent` is not in the checkpoint",
    ),
    (
        16,
        [Segment("half")],
        r"weight `w` bind\[0\] \(`half`\): checkpoint tensor `half` is f16, buffer declares f32",
    ),
    (
        16,
        [Segment("a", rows=(0, 9))],
        r"weight `w` bind\[0\] \(`a`\): rows \[0, 9\) outside the tensor's 8",
    ),
    (
        16,
        [Segment("a"), Segment("a", cols=(3, 5))],
        r"bind\[1\] \(`a`\): cols \[3, 5\) outside the tensor's 4",
    ),
    (16, [Segment("v", rows=(0, 2))], r"rows \[0, 2\) outside the tensor's 1"),
    (
        128,
        [Segment("a", rows=(0, 7))],
        r"weight `w`: its 1 bound segment\(s\) total 112 bytes, the buffer is 128",
    ),
    (
        16,
        [Segment("a", interleave=Interleave("b", 2))],
        r"interleaves `b` of shape \[4, 8\] with shape \[8, 4\]",
    ),
    (16, [Segment("b", interleave=Interleave("b", 3))], "4 rows are not blocks of 3"),
    (16, [Segment("a", interleave=Interleave("half", 2))], "`half` is f16, buffer declares f32"),
]


@pytest.mark.parametrize(("nbytes", "segments", "message"), FAULTS)
def test_a_bind_that_does_not_fit_is_refused(nbytes, segments, message):
    store = Store()
    for name, format_, shape in (
        ("a", "f32", (8, 4)),
        ("b", "f32", (4, 8)),
        ("half", "f16", (8, 4)),
        ("v", "f32", (4,)),
    ):
        store.add(name, format_, shape)
    with pytest.raises(WeightError, match=message):
        bound(store, "f32", nbytes, *segments)


def test_every_buffer_at_fault_is_listed():
    store = Store()
    buffers = {
        name: (Buffer("f32", (4,), "weight", bind=(Segment(f"no.{name}"),)), 16) for name in "xyz"
    }
    with pytest.raises(WeightError, match=r"`no.x` .*; .*`no.y` .*; .*`no.z`"):
        plan_weights(buffers, store.tensors, {})


def test_many_faults_are_counted():
    buffers = {
        f"w{i:02}": (Buffer("f32", (4,), "weight", bind=(Segment("no"),)), 16) for i in range(20)
    }
    with pytest.raises(WeightError, match=r"w07.*; and 12 more$"):
        plan_weights(buffers, {}, {})
