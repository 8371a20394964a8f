"""A kernel whose sizes are baked in says nothing of them: only calls at other sizes tell."""

import pytest

from definitions import definition, workload
from prove.runs import run

TENSOR = {"shape": ["n", "Hv"], "dtype": "float32"}
HEADS = {"axes": {"n": {"type": "var"}, "Hv": {"type": "var"}}, "inputs": {"x": TENSOR}}
BAKED = """\
import torch
def run(x):
    y = torch.zeros_like(x)
    y[:, :32] = 2 * x[:, :32]
    return y
"""


@pytest.mark.parametrize(("heads", "status"), [(32, "PASSED"), (48, "INCORRECT_NUMERICAL")])
def test_h02_a_count_that_nothing_states_is_compared_at_the_models_own(zygote, heads, status):
    of = definition(**HEADS, outputs={"y": TENSOR})
    assert run(zygote, BAKED, of=of, on=workload(n=2, Hv=heads)).status == status
