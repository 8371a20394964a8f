"""The order of the table: no other order of its rules leaves fewer launches."""

import copy
from collections.abc import Iterator

import pytest

from bedstone.lane.body import Body
from bedstone.lane.classes import LaneOp
from bedstone.lane.facts import Facts, Knobs
from bedstone.lane.link import link
from bedstone.lane.optimize import Optimizer
from bedstone.lane.table import TABLE, Rule
from bedstone.lane.views import is_taken
from lane_graphs import CPU, graph_of
from lane_zoo import SHALLOW

Partition = frozenset[tuple[int, ...]]


def optimizer(family: str) -> Optimizer:
    facts = Facts.of(graph_of(SHALLOW[family], "decode"), "precise", Knobs())
    return Optimizer(Body(facts), CPU, ())


def cloned(one: Optimizer) -> Optimizer:
    """The same state, which changes by itself."""
    other, body = copy.copy(one), copy.copy(one.body)
    body.nodes, body._rank = dict(body.nodes), dict(body._rank)
    body._places = list(body._places)
    body._maker, body._overwriter = dict(body._maker), dict(body._overwriter)
    body._readers = {name: list(readers) for name, readers in body._readers.items()}
    other.body, other.fusions, other._misses = body, list(one.fusions), {}
    return other


def partition(one: Optimizer) -> Partition:
    return frozenset(node.sources for node in one.body.nodes.values())


def launches(one: Optimizer) -> int:
    ops: Iterator[LaneOp] = (node.op for node in one.body.nodes.values())
    return sum(len(link(op, one.body.facts)) for op in ops if not is_taken(op))


def touched(one: Optimizer, rule: Rule) -> set[int]:
    """The ops that a rule joins when it is the first to be tried."""
    alone = cloned(one)
    alone._sweep(rule)
    return {op for fusion in alone.fusions for op in fusion.ops}


def rivals(family: str) -> list[list[Rule]]:
    """Rules that may want the same ops, together; only among those does the order matter."""
    whole = optimizer(family)
    whole.run()
    wanted = {rule.name: touched(optimizer(family), rule) for rule in TABLE}
    for fusion in whole.fusions:
        wanted[fusion.rule] |= set(fusion.ops)
    sets: list[tuple[set[int], list[Rule]]] = []
    for rule in TABLE:
        ops, rules = set(wanted[rule.name]), [rule]
        met = [one for one in sets if one[0] & ops]
        for other in met:
            ops, rules = ops | other[0], other[1] + rules
            sets.remove(other)
        if ops:
            sets.append((ops, rules))
    return [rules for _, rules in sets if len(rules) > 1]


def fewest(start: Optimizer, rules: list[Rule], known: dict[Partition, int]) -> int:
    """The fewest launches that any order of `rules` leaves, the others tried in the table's."""
    at = partition(start)
    if at not in known:
        counts = []
        for rule in rules:
            next_one = cloned(start)
            if next_one._sweep(rule):
                counts.append(fewest(next_one, rules, known))
        if not counts:
            start.run()
            counts = [launches(start)]
        known[at] = min(counts)
    return known[at]


@pytest.mark.parametrize("family", SHALLOW)
def test_no_order_of_the_rules_leaves_fewer_launches(family: str) -> None:
    chosen = optimizer(family)
    chosen.run()
    groups = rivals(family)
    assert groups
    for rules in groups:
        assert fewest(optimizer(family), rules, {}) == launches(chosen), [r.name for r in rules]


def test_another_order_would_leave_more() -> None:
    """What the order is for: products side by side are no gated unit any more."""
    first = [rule for rule in TABLE if rule.name == "gemv_parts"]
    other = optimizer("qwen3")
    other._sweep(first[0])
    other.run()
    chosen = optimizer("qwen3")
    chosen.run()
    assert launches(other) > launches(chosen)
