"""Graphs on which a rule fires, and those on which it must not: of one sequence or of two."""

from dataclasses import dataclass, field
from typing import Any

from bedstone.graph.parse import parse
from bedstone.graph.step import StepGraph

CONSTANTS = """\
E = const(format=q8_0, shape=(96, 64))
W0 = const(format=q8_0, shape=(64, 64))
W1 = const(format=q8_0, shape=(64, 64))
W2 = const(format=q8_0, shape=(64, 64))
Q4 = const(format=q4_0, shape=(64, 64))
F16 = const(format=f16, shape=(64, 64))
b = const(format=f32, shape=(64,))
w = const(format=f32, shape=(64,))
h = const(format=f32, shape=(16,))
R = const(format=f32, shape=(4, 64))
r4 = const(format=f32, shape=(4,))
XG = const(format=q8_0, shape=(4, 32, 64))
XU = const(format=q8_0, shape=(4, 32, 64))
X4 = const(format=q4_0, shape=(4, 32, 64))
XD = const(format=q8_0, shape=(4, 64, 32))
SG = const(format=f32, shape=(1, 64))
SQ = const(format=q8_0, shape=(1, 64))
HK = const(format=q8_0, shape=(32, 64))
HV = const(format=q8_0, shape=(64, 32))
H4 = const(format=q4_0, shape=(32, 64))
V4 = const(format=q4_0, shape=(64, 32))
T = const(format=f32, shape=(64, 3))
T2 = const(format=f32, shape=(32, 3))
A = const(format=f32, shape=(2, 64))
al = const(format=f32, shape=(2,))
dt = const(format=f32, shape=(2,))
"""

ONE = """\
graph(model=t, form={form}, rows={rows}, params=(pos,), outputs=({outputs}))
{constants}K = table(capacity=32, width=64)
V = table(capacity=32, width=64)
L = table(capacity=32, width=96)
ring = table(capacity=2, width=64, zeros=true)
ring.k = table(capacity=2, width=32, zeros=true)
state = table(capacity=32, width=32, zeros=true)
S = table(capacity={rows}, width=64, scratch=true)
S32 = table(capacity={rows}, width=32, scratch=true)
S2 = table(capacity={rows}, width=2, scratch=true)
token = carried(rows={rows})
rope = ropetable(inv_freq=(1.0, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.005))
x = embed(ids=token, table=E)
{body}
out = row(x={out}, at=fixed(row=0))
logits = linear(x=out, w=E)
next = argmax(x=logits)
"""

BATCH = """\
graph(model=t, form=batch, rows=2, params=(pos.0, pos.1), outputs=({outputs}))
{constants}K.0 = table(capacity=32, width=64)
K.1 = table(capacity=32, width=64)
V.0 = table(capacity=32, width=64)
V.1 = table(capacity=32, width=64)
S = table(capacity=2, width=64, scratch=true)
token = carried(rows=2)
x = embed(ids=token, table=E)
{body}
logits = linear(x={out}, w=E)
next = argmax(x=logits)
"""

HEADS = "rope=rope, pos=pos, heads=4, head_dim=16, rot=16, kind=neox"
ATTEND = "pos=pos, heads=4, groups=4, dk=16, dv=16, scale=0.25"
AT = "at=atparam(param=pos)"
FIRST = "at=fixed(row=0)"
VALUES = f"V@1 = set(table=V, x=x, {AT})"
KEPT = f"K@1 = set(table=K, x=r, {AT})"
CACHES = f"{VALUES}\nK@1 = set(table=K, x=x, {AT})\n"
ATTENDED = f"{CACHES}a = attention(q=x, k=K@1, v=V@1, {ATTEND})\n"
ONCE = f"S@1 = set(table=S, x=x, {FIRST})\n"
AGAIN = f"S@2 = set(table=S@1, x=x, {FIRST})\n"
"""A scratch table written, and written over: what reads the first version must come before."""


def attend(keys: str = "K@1", query: str = "x", out: str = "y") -> str:
    return f"{out} = attention(q={query}, k={keys}, v=V@1, {ATTEND})"


@dataclass(frozen=True)
class Case:
    """A graph's body, the tensor its head reads, and how the graph or the lane differ."""

    rule: str
    body: str
    out: str = "y"
    reason: str = ""
    outputs: str = "logits, next"
    rows: int = 1
    options: dict[str, Any] = field(default_factory=dict)
    numerics: str = "precise"
    batch: bool = False

    @property
    def graph(self) -> StepGraph:
        form = "decode" if self.rows == 1 else "chunk"
        text = (BATCH if self.batch else ONE).format(
            form=form,
            rows=self.rows,
            outputs=self.outputs,
            body=self.body,
            out=self.out,
            constants=CONSTANTS,
        )
        return parse(text)
