"""What each launch of a schedule hands its kernel, by the kernel's own parameter names.

The lane names tensors, constants and tables; a kernel of the library names parameters. This module
is where the two meet: `operands` returns the meaning of each parameter, and nothing about where it
lies, which `bedstone.build.placement` decides, or about order, which the library's catalog knows.
"""

from collections.abc import Callable
from typing import Any

from bedstone.build import operands_dense, operands_heads, operands_mixture, operands_recurrent
from bedstone.build.operand import Count, Int, Operands
from bedstone.lane.launch import (
    ArgMax,
    Attention,
    Concat,
    Conv,
    Decay,
    Delta,
    Eltwise,
    Embed,
    ExpertGlu,
    ExpertProduct,
    ExpertSum,
    Finish,
    FlatAttention,
    GatedNorm,
    Gather,
    Glu,
    HeadProduct,
    L2Norm,
    Launch,
    Norm,
    OneLaunch,
    Parts,
    Product,
    Quantize,
    Renorm,
    Rope,
    Route,
    Sample,
    Score,
    Sequences,
    SetRows,
    TakePart,
    TakeRow,
    TopK,
    WeightedSum,
)


def operands(launch: Launch) -> Operands:
    """The meaning of every parameter of the kernel that `launch` calls.

    A launch is of one sequence, or has a row of each: then row r is sequence r.
    """
    if isinstance(launch, Sequences):
        rows = Count(len(launch.members))
        return {**_BINDERS[type(launch.whole)](launch.whole), "stride": Int(1), "seqs": rows}
    return {**_BINDERS[type(launch)](launch), "stride": Int(0), "seqs": Int(1)}


_BINDERS: dict[type[OneLaunch], Callable[[Any], Operands]] = {
    Embed: operands_dense.embed,
    Norm: operands_dense.norm,
    L2Norm: operands_dense.l2norm,
    GatedNorm: operands_dense.gated_norm,
    Quantize: operands_dense.quantize,
    Product: operands_dense.product,
    Parts: operands_dense.parts,
    Glu: operands_dense.glu,
    Eltwise: operands_dense.eltwise,
    ArgMax: operands_dense.argmax,
    Sample: operands_dense.sample,
    Finish: operands_dense.finish,
    SetRows: operands_dense.set_rows,
    TakeRow: operands_dense.take_row,
    TakePart: operands_dense.take_part,
    Concat: operands_dense.concat,
    Gather: operands_dense.gather,
    Rope: operands_heads.rope,
    Attention: operands_heads.attention,
    FlatAttention: operands_heads.flat_attention,
    HeadProduct: operands_heads.head_product,
    Score: operands_mixture.score,
    TopK: operands_mixture.topk,
    Renorm: operands_mixture.renorm,
    Route: operands_mixture.route,
    ExpertProduct: operands_mixture.expert_product,
    ExpertGlu: operands_mixture.expert_glu,
    ExpertSum: operands_mixture.expert_sum,
    WeightedSum: operands_mixture.weighted_sum,
    Decay: operands_recurrent.decay,
    Conv: operands_recurrent.conv,
    Delta: operands_recurrent.delta,
}
