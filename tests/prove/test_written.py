"""Outputs written in place: what was not written neither hides an error nor is held against one."""

import pytest
import torch

from bedstone.prove.results import Expected
from bedstone.prove.written import judge_output
from bedstone.spec.workload import Tolerance

TABLE = Expected("table", "float32", (80, 64), "table")
ROUGH = Tolerance(rtol=5e-2)


@pytest.fixture
def table():
    """Small numbers, and what one row becomes: numbers thirty times as large."""
    before = torch.randn(80, 64, generator=torch.Generator().manual_seed(0)) * 0.1
    after = before.clone()
    after[7] = torch.randn(64, generator=torch.Generator().manual_seed(1)) * 3
    return before, after


def test_an_error_is_measured_beside_what_was_written(table):
    before, after = table
    found = after.clone()
    found[7, :8] += 0.1
    metrics = judge_output(TABLE, before, found, after, ROUGH)
    assert metrics.fits
    found[7, 5] += 0.9
    metrics = judge_output(TABLE, before, found, after, ROUGH)
    assert (metrics.fits, metrics.worst) == (False, (7, 5))


def test_a_row_that_is_none_of_a_kernels_own_is_a_misfit(table):
    before, after = table
    found = after.clone()
    found[60, 3] += 1.0
    metrics = judge_output(TABLE, before, found, after, ROUGH)
    assert (metrics.fits, metrics.worst) == (False, (60, 3))
    assert not judge_output(TABLE, before, before, after, ROUGH).fits


def test_memory_that_nobody_writes_may_hold_anything(table):
    before, _ = table
    before[3] = torch.nan
    assert judge_output(TABLE, before, before.clone(), before.clone(), ROUGH).fits
    after = before.clone()
    after[9] = 1.0
    assert judge_output(TABLE, before, after.clone(), after, ROUGH).fits


def test_an_output_of_its_own_is_judged_whole(table):
    before, after = table
    assert not judge_output(TABLE, None, before, after, ROUGH).fits
    assert judge_output(TABLE, None, after, after, ROUGH).fits
