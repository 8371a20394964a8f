"""Rules held back, in every way: the step stays the same bit for bit."""

import itertools
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from bedstone.errors import CallerError
from bedstone.graph.step import StepGraph
from bedstone.lane.facts import Knobs
from bedstone.lane.plan import RULES
from bedstone.lane.table import TABLE
from lane_graphs import (
    LLAMA,
    Setting,
    fired,
    graph_of,
    lowered,
    outcome,
    same,
    setting,
    truth,
)
from lane_zoo import SHALLOW, ZOO

FORMS = ("decode", "chunk", "batch")
NUMERICS = ("precise", "quantized")
RANDOM = 34
"""Subsets at random, none twice, for each form and numerics of a family: over 200 a family."""


PAIRS = 40
"""Pairs at random of a family's chunk and batch."""


@cache
def stage(family: str, form: str) -> tuple[StepGraph, Setting]:
    graph = graph_of(SHALLOW[family], form)
    return graph, setting(graph)


def steps_held(family: str, form: str) -> tuple[str, ...]:
    """The steps whose holding back can change the schedule of a family's form."""
    found = fired(lowered(stage(family, form)[0])).keys()
    own = ("sequences",) if form == "batch" else ()
    return tuple(rule for rule in RULES if rule in {*found, *own})


def subsets(family: str, form: str, numerics: str) -> Iterator[tuple[str, ...]]:
    """All, none, each alone, all but each, and some at random."""
    steps = steps_held(family, form)
    yield RULES
    yield ()
    if numerics == "precise":
        for step in steps:
            yield (step,)
            yield tuple(other for other in steps if other != step)
    rng = np.random.default_rng([len(family), len(form), len(numerics)])
    drawn: dict[tuple[str, ...], None] = {}
    while len(drawn) < RANDOM:
        drawn[tuple(step for step in steps if rng.random() < 0.5)] = None
    yield from drawn


def assert_agree(family: str, form: str, numerics: Any, subsets: Iterable[tuple[str, ...]]) -> None:
    """However much is held back, the step computes what its graph says."""
    graph, given = stage(family, form)
    expected = truth(graph, given, numerics)
    fewest = len(lowered(graph, numerics).steps)
    most = len(lowered(graph, numerics, held=RULES).steps)
    seen: set[str] = set()
    for held in dict.fromkeys(subsets):
        schedule = lowered(graph, numerics, held=held)
        assert not fired(schedule).keys() & set(held)
        assert fewest <= len(schedule.steps) <= most
        made = repr((schedule.steps, schedule.buffers))
        if made not in seen:
            assert same(outcome(schedule, given), expected), held
        seen.add(made)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("numerics", NUMERICS)
@pytest.mark.parametrize("family", SHALLOW)
def test_every_held_subset_agrees_with_the_graph(family: str, form: str, numerics: Any) -> None:
    assert_agree(family, form, numerics, subsets(family, form, numerics))


@pytest.mark.slow
@pytest.mark.parametrize("family", SHALLOW)
def test_every_pair_of_rules_held_agrees_with_the_graph(family: str) -> None:
    """All pairs for one sequence, some of each other form's."""
    for form in FORMS:
        pairs = list(itertools.combinations(steps_held(family, form), 2))
        if form != "decode":
            some = np.random.default_rng([len(family), len(form)]).permutation(len(pairs))
            pairs = [pairs[at] for at in some[:PAIRS]]
        assert_agree(family, form, "precise", pairs)


def test_every_rule_fires_in_some_model() -> None:
    """A rule that no model fires would be dead."""
    found: set[str] = set()
    for model in ZOO.values():
        for form in FORMS:
            found |= fired(lowered(graph_of(model, form))).keys()
    assert found == {rule.name for rule in TABLE}


def test_the_steps_of_the_lane_are_the_shared_rules_and_its_own() -> None:
    assert RULES[-3:] == ("rows_a_warp", "gemv_parts", "sequences")
    assert {*RULES} == {rule.name for rule in TABLE} | {"rows_a_warp", "sequences"}
    assert len({*RULES}) == len(RULES)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("family", SHALLOW)
def test_quantizing_in_the_producer_changes_no_bit(family: str, form: str) -> None:
    graph, given = stage(family, form)
    folded, apart = (
        lowered(graph, "quantized", knobs=Knobs(fuse_quant=fuse)) for fuse in (True, False)
    )
    assert len(folded.steps) < len(apart.steps)
    assert same(outcome(folded, given), outcome(apart, given))


@pytest.mark.parametrize("form", FORMS)
def test_writing_in_place_changes_no_bit(form: str) -> None:
    graph, given = stage("gemma3", form)
    over, apart = (lowered(graph, knobs=Knobs(in_place=in_place)) for in_place in (True, False))
    assert repr(over.steps) == repr(apart.steps)
    assert same(outcome(over, given), outcome(apart, given))


def test_numerics_change_what_a_product_reads() -> None:
    graph, given = stage("qwen3", "decode")
    precise, quantized = (outcome(lowered(graph, n), given) for n in NUMERICS)
    assert not same(precise, quantized)


def test_every_rule_is_exact() -> None:
    """What the tests above hold bit for bit is what the table says."""
    assert {rule.numeric for rule in TABLE} == {"exact"}


def test_an_unknown_rule_cannot_be_held_back() -> None:
    with pytest.raises(CallerError, match=r"`norm_rope`.*qk_norm_rope"):
        lowered(graph_of(LLAMA, "decode"), held=("glu", "norm_rope"))
