"""The launches of a schedule: one call of a library kernel each, as data.

A launch names every tensor, constant and size its kernel takes, so nothing downstream looks at the
graph again. What a launch touches is derived from the types of its fields (`bedstone.lane.touch`),
never written twice.
"""

from dataclasses import dataclass

from bedstone.lane.launch_dense import (
    Advance,
    ArgMax,
    Eltwise,
    EltwiseFn,
    Embed,
    Finish,
    GatedNorm,
    GemmPart,
    Glu,
    L2Norm,
    Norm,
    Parts,
    PreNorm,
    Product,
    Quantize,
    Sample,
)
from bedstone.lane.launch_heads import (
    Attending,
    Attention,
    FlatAttention,
    HeadNorm,
    HeadProduct,
    KeyTail,
    Rope,
    RopeSide,
    Split,
)
from bedstone.lane.launch_mixture import (
    ExpertGlu,
    ExpertProduct,
    ExpertSum,
    Renorm,
    Route,
    Routing,
    Score,
    SharedIn,
    SharedOut,
    TopK,
    WeightedSum,
)
from bedstone.lane.launch_placed import Concat, Gather, SetRows, TakePart, TakeRow
from bedstone.lane.launch_recurrent import Conv, ConvPart, Decay, DecayGates, Delta
from bedstone.lane.operand import (
    Carry,
    Columns,
    Dst,
    Form,
    Matrix,
    Read,
    Rows,
    Stack,
    ToBuf,
    ToEach,
    ToRows,
    ToScratch,
    Upto,
    Version,
    Window,
    most_rows,
)

__all__ = [
    "Advance",
    "ArgMax",
    "Attending",
    "Attention",
    "Carry",
    "Finish",
    "Columns",
    "Concat",
    "Conv",
    "ConvPart",
    "Decay",
    "DecayGates",
    "Delta",
    "Dst",
    "Eltwise",
    "EltwiseFn",
    "Embed",
    "ExpertGlu",
    "ExpertProduct",
    "ExpertSum",
    "FlatAttention",
    "Form",
    "GatedNorm",
    "Gather",
    "GemmPart",
    "Glu",
    "HeadNorm",
    "HeadProduct",
    "KeyTail",
    "L2Norm",
    "Launch",
    "Matrix",
    "Norm",
    "OneLaunch",
    "Parts",
    "PreNorm",
    "Product",
    "Quantize",
    "Read",
    "Renorm",
    "Rope",
    "RopeSide",
    "Route",
    "Routing",
    "Rows",
    "Sample",
    "Score",
    "Sequences",
    "SetRows",
    "SharedIn",
    "SharedOut",
    "Split",
    "Stack",
    "TakePart",
    "TakeRow",
    "ToBuf",
    "ToEach",
    "ToRows",
    "ToScratch",
    "TopK",
    "Upto",
    "Version",
    "WeightedSum",
    "Window",
    "most_rows",
]

OneLaunch = (
    Embed
    | Norm
    | L2Norm
    | GatedNorm
    | Quantize
    | Product
    | Parts
    | Glu
    | Eltwise
    | ArgMax
    | Sample
    | Finish
    | TakeRow
    | TakePart
    | SetRows
    | Concat
    | Gather
    | Rope
    | Attention
    | FlatAttention
    | HeadProduct
    | Score
    | TopK
    | Renorm
    | WeightedSum
    | Route
    | ExpertProduct
    | ExpertGlu
    | ExpertSum
    | Decay
    | Conv
    | Delta
)


@dataclass(frozen=True, slots=True)
class Sequences:
    """The same launch for every sequence of a batch, as one.

    `members` say what each does; `whole` is the one call: the first member with a row for each.
    """

    whole: OneLaunch
    members: tuple[OneLaunch, ...]


Launch = OneLaunch | Sequences
