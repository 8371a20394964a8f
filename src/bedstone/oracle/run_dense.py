"""The launches on whole rows, and those that move values, in NumPy."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import CallerError
from bedstone.graph import step
from bedstone.graph.step import Out, Ref
from bedstone.lane.launch import (
    Advance,
    ArgMax,
    Concat,
    Dst,
    Eltwise,
    Embed,
    Finish,
    GatedNorm,
    Gather,
    Glu,
    L2Norm,
    Matrix,
    Norm,
    Parts,
    Product,
    Quantize,
    Sample,
    SetRows,
    TakePart,
    TakeRow,
    Window,
)
from bedstone.oracle import arithmetic
from bedstone.oracle.draw import Wish, draw
from bedstone.oracle.execution import Array, Execution, window_indices

Writes = Iterator[tuple[Dst, Array]]

X, W, Y = Ref("x"), Ref("w"), Out("y")


def embed(run: Execution, launch: Embed) -> Writes:
    """Rows of a table by id."""
    y = run.constants[launch.table.const][run.read(launch.ids)[:, 0]]
    yield launch.dst, y if launch.by is None else y * np.float32(launch.by)


def norm(run: Execution, launch: Norm) -> Writes:
    """A norm, of a sum where there is one."""
    x = run.read(launch.x)
    if launch.add is not None and launch.sum is not None:
        addend, pre = run.read(launch.add), launch.pre
        if pre is not None:
            op = step.Norm(X, W, Y, pre.eps, launch.width, pre.plus_one)
            addend = arithmetic.norm(addend, run.constants[pre.w], op)
        x = x + addend
        yield launch.sum, x
    op = step.Norm(X, W, Y, launch.eps, launch.unit, launch.plus_one)
    yield launch.dst, arithmetic.norm(x, run.constants[launch.w], op)


def l2norm(run: Execution, launch: L2Norm) -> Writes:
    """Units brought to unit length."""
    op = step.L2Norm(X, Y, launch.eps, launch.unit)
    yield launch.dst, arithmetic.l2norm(run.read(launch.x), op)


def gated_norm(run: Execution, launch: GatedNorm) -> Writes:
    """A norm times an activation."""
    op = step.Norm(X, W, Y, launch.eps, launch.unit, launch.plus_one)
    normed = arithmetic.norm(run.read(launch.x), run.constants[launch.w], op)
    yield launch.dst, normed * arithmetic.ACTIVATIONS["silu"](run.read(launch.gate))


def quantize(run: Execution, launch: Quantize) -> Writes:
    """The quantized form of a tensor."""
    yield launch.dst, run.read(launch.x)


def linear(run: Execution, x: Array, m: Matrix, bias: str | None = None) -> Array:
    """A product, and the bias added to it."""
    y = arithmetic.product(x, run.constants[m.const])
    return y if bias is None else y + run.constants[bias]


def product(run: Execution, launch: Product) -> Writes:
    """One product, with what is added to it or the cap on it."""
    y = linear(run, run.read(launch.x), launch.m, launch.bias)
    if launch.add is not None:
        y = y + run.read(launch.add)
    yield launch.dst, y if launch.cap is None else arithmetic.softcap(y, launch.cap)


def parts(run: Execution, launch: Parts) -> Writes:
    """Several products of one input."""
    x = run.read(launch.x)
    for part in launch.parts:
        yield part.dst, linear(run, x, part.m, part.bias)


def glu(run: Execution, launch: Glu) -> Writes:
    """A gated product."""
    x = run.read(launch.x)
    gate = arithmetic.ACTIVATIONS[launch.act](linear(run, x, launch.gate))
    yield launch.dst, gate * linear(run, x, launch.up)


def set_rows(run: Execution, launch: SetRows) -> Writes:
    """Rows into a table."""
    yield launch.dst, run.read(launch.x)


def take_row(run: Execution, launch: TakeRow) -> Writes:
    """One row of a tensor."""
    row = run.start(launch.at, 1)
    yield launch.dst, run.read(launch.x)[row : row + 1]


def take_part(run: Execution, launch: TakePart) -> Writes:
    """A part of every row."""
    x = run.read(launch.x)
    window = Window(launch.row, launch.pitch, launch.width)
    at = launch.offset + window_indices(window, len(x), launch.units * launch.width)
    yield launch.dst, x.reshape(-1)[at]


def concat(run: Execution, launch: Concat) -> Writes:
    """Units side by side."""
    a, b = run.read(launch.a), run.read(launch.b)
    left, right = launch.widths
    units = a.reshape(len(a), launch.units, left)
    beside = b.reshape(len(b), 1 if launch.shared else launch.units, right)
    beside = np.broadcast_to(beside, (len(b), launch.units, right))
    yield launch.dst, np.concatenate([units, beside], axis=2).reshape(len(a), -1)


def gather(run: Execution, launch: Gather) -> Writes:
    """Columns of a table's rows, those that hold something."""
    rows = run.rows(run.schedule.buffers[launch.dst.tensor])
    table = run.tables[launch.table.table]
    yield launch.dst, table[:rows, launch.first : launch.first + launch.width]


def argmax(run: Execution, launch: ArgMax) -> Writes:
    """The largest value's index, and what the next decode step reads."""
    best = np.argmax(run.read(launch.x), axis=-1).astype(np.int32)
    _advance(run, launch.advances, best, 1)
    yield launch.dst, best[:, None]


def sample(run: Execution, launch: Sample) -> Writes:
    """The tokens drawn; a sequence's place is its length after the step."""
    logits = run.read(launch.x)
    batch = run.schedule.form == "batch"
    wishes = run.wishes or [Wish()] * launch.rows
    drawn = [
        draw(row, wish, run.params[f"pos.{item}" if batch else "pos"])[0]
        for item, (row, wish) in enumerate(zip(logits, wishes, strict=True))
    ]
    yield launch.dst, np.array(drawn, np.int32)[:, None]


def finish(run: Execution, launch: Finish) -> Writes:
    """The tokens drawn, and what the next decode step reads: where one is bad, this one again."""
    drawn = run.read(launch.x)[:, 0]
    good = int((drawn >= 0).all())
    _advance(run, launch.advances, drawn * good, good)
    yield launch.dst, (drawn * good)[:, None]


def _advance(
    run: Execution, advances: tuple[Advance, ...], found: NDArray[np.int32], by: int
) -> None:
    for advance in advances:
        tokens = run.next_ids.setdefault(advance.token, [0] * len(found))
        tokens[advance.item] = int(found[advance.item])
        run.next_params[advance.pos] = run.params[advance.pos] + by


def eltwise(run: Execution, launch: Eltwise) -> Writes:
    """A function of one tensor or two."""
    a = run.read(launch.a)
    second = None if launch.b is None else run.read(launch.b)
    if launch.row is not None:
        second = run.constants[launch.row]
    yield launch.dst, _elementwise(launch, a, second)


def _elementwise(launch: Eltwise, a: Array, b: Array | None) -> Array:
    y: Array
    match launch.fn:
        case "add" | "add_row" if b is not None:
            y = a + b
        case "mul" if b is not None:
            y = a * b
        case "scale" if launch.by is not None:
            y = a * np.float32(launch.by)
        case "softcap" if launch.by is not None:
            y = arithmetic.softcap(a, launch.by)
        case "silu" | "gelu_tanh" | "sigmoid" | "softplus":
            y = arithmetic.ACTIVATIONS[launch.fn](a)
        case fn:
            raise CallerError(f"elementwise `{fn}` lacks an operand")
    return y
