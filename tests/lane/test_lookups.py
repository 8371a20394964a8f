"""The table of lookups: what it names, and that plans ask for nothing else."""

import re
from itertools import product
from typing import Any

import pytest

from bedstone.lane.entries import entry
from bedstone.lane.launch import Launch
from bedstone.lane.lookups import lookups
from bedstone.lane.plan import RULES
from bedstone.lane.shim import Shim
from bedstone.library.catalog import cpu_kernels
from bedstone.spec.dtype import FORMATS
from lane_graphs import CPU, AnyShim, graph_of, lowered
from lane_zoo import ZOO

TABLE = {lookup.entry: lookup for lookup in lookups()}
FORMAT = "|".join(FORMATS)
UNLIKE = re.compile(rf"parts\d(_({FORMAT})(_b)?){{2,4}}(_rows)?")
"""Parts of unlike formats are named part by part: no kernel is, and a plan goes on without."""


class Asking:
    """Passes questions on, and keeps them."""

    def __init__(self, shim: Shim) -> None:
        self.shim = shim
        self.asked: set[str] = set()

    def lacks(self, launch: Launch) -> str | None:
        self.asked.add(entry(launch))
        return self.shim.lacks(launch)


@pytest.mark.parametrize("form", ["decode", "chunk", "batch"])
@pytest.mark.parametrize("name", ZOO)
def test_a_plan_asks_for_nothing_that_the_table_lacks(name: str, form: Any) -> None:
    matrix = "q8_0" if ZOO[name].recurrent is None else "f16"
    lanes: tuple[tuple[Shim, tuple[str, ...]], ...] = (
        (CPU, ()),
        (AnyShim(), ()),
        (AnyShim(), RULES),
    )
    for (shim, held), numerics in product(lanes, ("precise", "quantized")):
        asking = Asking(shim)
        lowered(graph_of(ZOO[name], form, matrix), numerics, shim=asking, held=held)
        undeclared = {
            asked for asked in asking.asked if asked not in TABLE or form not in TABLE[asked].forms
        }
        assert {asked for asked in undeclared if not UNLIKE.fullmatch(asked)} == set()


def test_every_kernel_of_a_step_is_asked_for() -> None:
    """But for what takes another's place, and what no step calls."""
    kernels = cpu_kernels()
    others = {name for rows in kernels.variants.values() for name, _ in rows}
    others |= set(kernels.laid.values())
    beside = {"cast_f16_f32", "cast_bf16_f32", "rope_table"}
    beside |= {kernels.kernels[name].layer for name in kernels.laid.values()}
    assert kernels.kernels.keys() - others - TABLE.keys() == beside


def test_an_op_without_another_launch_is_told_from_a_fusion() -> None:
    assert TABLE["linear_q4_1"].without is None
    assert TABLE["linear_q4_1_rows"].without == "each op is launched by itself"
    assert TABLE["norm_q"].without == "a launch of its own quantizes the result"


def test_only_quantized_matrices_take_quantized_rows() -> None:
    assert "linear_q_q8_0" in TABLE
    assert not [name for name in TABLE if re.search("_q_(f32|f16|bf16)", name)]
