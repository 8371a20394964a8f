"""Rules held back, in every way: the step stays the same bit for bit."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bedstone.checkpoint.config import ModelConfig
from bedstone.errors import CallerError
from bedstone.lane.facts import Knobs
from bedstone.lane.plan import RULES
from bedstone.lane.table import TABLE
from lane_graphs import (
    BIASED,
    LLAMA,
    QWEN3,
    fired,
    graph_of,
    lowered,
    outcome,
    same,
    setting,
    truth,
)

FORMS = ("decode", "chunk", "batch")


def subsets() -> Iterator[tuple[str, ...]]:
    """None, all, each rule, each pair, all but each, and some at random."""
    yield ()
    yield RULES
    for rule in RULES:
        yield (rule,)
        yield tuple(other for other in RULES if other != rule)
    yield from itertools.combinations(RULES, 2)
    rng = np.random.default_rng(11)
    for _ in range(40):
        yield tuple(rule for rule in RULES if rng.random() < 0.5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("numerics", ["precise", "quantized"])
@pytest.mark.parametrize("model", [QWEN3, BIASED], ids=["qwen3", "biased"])
def test_every_held_subset_agrees_with_the_graph(
    model: ModelConfig, form: str, numerics: Any
) -> None:
    graph = graph_of(model, form)
    given = setting(graph)
    expected = truth(graph, given, numerics)
    fewest = len(lowered(graph, numerics).steps)
    most = len(lowered(graph, numerics, held=RULES).steps)
    for held in subsets():
        schedule = lowered(graph, numerics, held=held)
        assert not fired(schedule).keys() & set(held)
        assert fewest <= len(schedule.steps) <= most
        assert same(outcome(schedule, given), expected), held


def test_every_rule_fires_in_some_model() -> None:
    """A rule that no model fires would be dead."""
    found: set[str] = set()
    for model, form in itertools.product((LLAMA, BIASED, QWEN3), FORMS):
        found |= fired(lowered(graph_of(model, form))).keys()
    assert found == set(RULES)


@pytest.mark.parametrize("form", FORMS)
def test_quantizing_in_the_producer_changes_no_bit(form: str) -> None:
    graph = graph_of(QWEN3, form)
    given = setting(graph)
    folded, apart = (
        lowered(graph, "quantized", knobs=Knobs(fuse_quant=fuse)) for fuse in (True, False)
    )
    assert len(folded.steps) < len(apart.steps)
    assert same(outcome(folded, given), outcome(apart, given))


def test_numerics_change_what_a_product_reads() -> None:
    graph = graph_of(QWEN3, "decode")
    given = setting(graph)
    precise, quantized = (outcome(lowered(graph, n), given) for n in ("precise", "quantized"))
    assert not same(precise, quantized)


def test_every_rule_is_exact() -> None:
    """What the tests above hold bit for bit is what the table says."""
    assert {rule.numeric for rule in TABLE} == {"exact"}


def test_an_unknown_rule_cannot_be_held_back() -> None:
    with pytest.raises(CallerError, match=r"`norm_rope`.*qk_norm_rope"):
        lowered(graph_of(LLAMA, "decode"), held=("glu", "norm_rope"))
