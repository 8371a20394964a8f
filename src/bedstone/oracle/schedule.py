"""An interpreter of a Schedule: every launch executed literally, on the bytes its buffers name.

A defect of a plan shows without a kernel.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

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
from bedstone.oracle import run_dense, run_heads, run_mixture, run_recurrent
from bedstone.oracle.execution import Array, Execution


class ScheduleOracle(Execution):
    """Runs a schedule step after step.

    After a step `next_ids` and `next_params` hold what its arg-max wrote for the decode step that
    follows.
    """

    def run(self, ids: Mapping[str, Sequence[int]], params: Mapping[str, int]) -> dict[str, Array]:
        """One step: `ids` for each carried vector, a value for each param. The step's outputs."""
        self._ids = {name: np.asarray(row, np.int32).reshape(-1, 1) for name, row in ids.items()}
        self.params = params
        self._arena[:] = 0xFF
        self.next_ids, self.next_params = {}, {}
        for step in self.schedule.steps:
            self._launch(step.launch)
        return {name: self.values(name).copy() for name in self.schedule.outputs}

    def _launch(self, launch: Launch) -> None:
        """Compute all that a launch does, then write it: its blocks run in any order."""
        members = launch.members if isinstance(launch, Sequences) else (launch,)
        made = [write for member in members for write in _RUNS[type(member)](self, member)]
        for dst, y in made:
            self.write(dst, y)


_RUNS: dict[type[OneLaunch], Callable[[Execution, Any], run_dense.Writes]] = {
    Embed: run_dense.embed,
    Norm: run_dense.norm,
    L2Norm: run_dense.l2norm,
    GatedNorm: run_dense.gated_norm,
    Quantize: run_dense.quantize,
    Product: run_dense.product,
    Parts: run_dense.parts,
    Glu: run_dense.glu,
    Eltwise: run_dense.eltwise,
    ArgMax: run_dense.argmax,
    Sample: run_dense.sample,
    Finish: run_dense.finish,
    SetRows: run_dense.set_rows,
    TakeRow: run_dense.take_row,
    TakePart: run_dense.take_part,
    Concat: run_dense.concat,
    Gather: run_dense.gather,
    Rope: run_heads.rope,
    Attention: run_heads.attention,
    FlatAttention: run_heads.flat_attention,
    HeadProduct: run_heads.head_product,
    Score: run_mixture.score,
    TopK: run_mixture.topk,
    Renorm: run_mixture.renorm,
    Route: run_mixture.route,
    ExpertProduct: run_mixture.expert_product,
    ExpertGlu: run_mixture.expert_glu,
    ExpertSum: run_mixture.expert_sum,
    WeightedSum: run_mixture.weighted_sum,
    Decay: run_recurrent.decay,
    Conv: run_recurrent.conv,
    Delta: run_recurrent.delta,
}
