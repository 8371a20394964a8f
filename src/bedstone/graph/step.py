"""The StepGraph: one step of one model, in one form, before lowering.

A graph is a list of pure ops over named tensors in SSA form, plus in-place writes to tables (`Set`,
`Conv`, `Delta`). A write yields a new *version* of its table, a name of its own whose storage is
the table's. Reading an older version after a newer one was made is illegal.

Three forms: `decode` (one row), `chunk` (rows of one sequence, a prefill piece) and `batch` (one
row for each of several sequences). Where `row_param` names a param, `rows` is the most rows a step
takes and the param says how many it takes now; a row at a literal index then counts from the start
only.

Every field that names a tensor is typed `Ref` or `Out` (or holds one: optional, a tuple, a nested
dataclass): `graph.refs` derives what an op reads and makes from the types, so a new op needs no
second table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bedstone.graph.dense import (
    Act,
    ActFn,
    Add,
    ArgMax,
    DenseOp,
    Embed,
    Finish,
    L2Norm,
    Linear,
    Mul,
    Norm,
    Sample,
    Scale,
    Softcap,
)
from bedstone.graph.heads import Attention, HeadOp, HLinear, Rope, RopeKind
from bedstone.graph.mixture import MixtureOp, Renorm, Score, ScoreFn, TopK, XLinear, XSum
from bedstone.graph.placed import Concat, Part, PlacedOp, Row, Set
from bedstone.graph.recurrent import Conv, Decay, Delta, RecurrentOp
from bedstone.graph.tensor import (
    AtParam,
    Carried,
    Const,
    Fixed,
    Out,
    Ref,
    RopeTable,
    RowSel,
    Table,
    Value,
)

__all__ = [
    "Act",
    "ActFn",
    "Add",
    "ArgMax",
    "AtParam",
    "Attention",
    "Carried",
    "Finish",
    "Concat",
    "Const",
    "Conv",
    "Decay",
    "Delta",
    "DenseOp",
    "Embed",
    "Fixed",
    "FormName",
    "HLinear",
    "HeadOp",
    "L2Norm",
    "Linear",
    "MixtureOp",
    "Mul",
    "Norm",
    "Op",
    "Out",
    "Part",
    "PlacedOp",
    "Ref",
    "RecurrentOp",
    "Renorm",
    "Rope",
    "RopeKind",
    "RopeTable",
    "Row",
    "RowSel",
    "Sample",
    "Scale",
    "Score",
    "ScoreFn",
    "Set",
    "Softcap",
    "StepGraph",
    "Table",
    "TopK",
    "Value",
    "XLinear",
    "XSum",
]

FormName = Literal["decode", "chunk", "batch"]

Op = DenseOp | PlacedOp | HeadOp | MixtureOp | RecurrentOp


@dataclass(frozen=True, slots=True)
class StepGraph:
    """One step of a model in one form.

    `params` are i32 numbers given with each run (`pos`: the length after the step; in a batch
    `pos.0`, `pos.1`, …). `outputs` are tensors a caller reads (`logits`, `next`). `values` holds
    the shape of what each op makes (`graph.infer`).
    """

    model: str
    form: FormName
    rows: int
    ops: tuple[Op, ...]
    consts: Mapping[str, Const]
    tables: Mapping[str, Table]
    carried: Mapping[str, Carried]
    ropes: Mapping[str, RopeTable]
    params: tuple[str, ...]
    outputs: tuple[str, ...]
    row_param: str | None = None
    values: Mapping[str, Value] = field(default_factory=dict[str, Value])
