"""The engine that applies the shared table: match, check, ask the shim, join, record.

Each rule sweeps the body in order; the table is repeated until nothing changes. That ends, for each
join leaves fewer nodes. What matched and did not join is a miss, kept with the reason it had last.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from bedstone.graph.refs import writes
from bedstone.lane.body import Body
from bedstone.lane.classes import LaneOp
from bedstone.lane.fit import fitted
from bedstone.lane.layout import View
from bedstone.lane.link import link
from bedstone.lane.pattern import Match, Siblings
from bedstone.lane.schedule import Fusion, Miss, Reason
from bedstone.lane.shim import Shim
from bedstone.lane.table import TABLE, Rule
from bedstone.lane.views import find_views


@dataclass(slots=True)
class Optimizer:
    """One body being optimized by the table, under a shim, with rules held back."""

    body: Body
    shim: Shim
    held: Collection[str]
    fusions: list[Fusion] = field(default_factory=list)
    _misses: dict[tuple[str, int], Miss] = field(default_factory=dict)
    _views: Mapping[str, View] = field(init=False)

    def __post_init__(self) -> None:
        self._views = find_views(self.body)

    def run(self) -> None:
        """Apply the table until no rule fires."""
        while sum(self._sweep(rule) for rule in TABLE):
            pass

    def misses(self) -> tuple[Miss, ...]:
        """What matched and never joined, by graph op and rule."""
        joined = {(fusion.rule, op) for fusion in self.fusions for op in fusion.ops}
        missed = [miss for at, miss in self._misses.items() if at not in joined]
        return tuple(sorted(missed, key=lambda miss: (miss.op, miss.rule)))

    def _sweep(self, rule: Rule) -> bool:
        """Apply one rule everywhere; whether it fired."""
        before = len(self.fusions)
        for match in self._matches(rule):
            self._join(rule, match)
        return len(self.fusions) > before

    def _matches(self, rule: Rule) -> Iterator[Match]:
        """The legal matches of a rule, found one at a time: joining one may undo the next."""
        if isinstance(rule.pattern, Siblings):
            for group in rule.pattern.groups(self.body):
                yield from self._grown(rule, group)
            return
        for key in self.body.order():
            roles = rule.pattern.match(key, self.body) if key in self.body.nodes else None
            if roles is not None:
                match = Match(self.body, roles, tree=True)
                if self._legal(rule, match):
                    yield match

    def _grown(self, rule: Rule, group: list[int]) -> Iterator[Match]:
        """Siblings taken greedily: each joins the first set of those before it that can take it."""
        sets: list[Match] = []
        for key in group:
            for at, grown in enumerate(sets):
                wider = _siblings(self.body, [*grown.roles.values(), key])
                if self._legal(rule, wider):
                    sets[at] = wider
                    break
            else:
                sets.append(_siblings(self.body, [key]))
        yield from (match for match in sets if len(match.roles) > 1)

    def _legal(self, rule: Rule, match: Match) -> bool:
        refused = self._refusal(rule, match)
        if refused is not None:
            reason, why = refused
            self._misses[rule.name, match.anchor] = Miss(rule.name, match.anchor, reason, why)
        return refused is None

    def _refusal(self, rule: Rule, match: Match) -> tuple[Reason, str] | None:
        op = rule.form(match)
        judged = replace(match, made=frozenset(writes(op)))
        for condition in rule.legal:
            why = condition.refusal(judged)
            if why is not None:
                return condition.reason, why
        lacking = self._lacking(op)
        if lacking is not None:
            return "shim", lacking
        return ("held", "held back by the caller") if rule.name in self.held else None

    def _lacking(self, op: LaneOp) -> str | None:
        facts = self.body.facts
        launches = (fitted(one, self._views, self.shim, facts.coding) for one in link(op, facts))
        answers = (self.shim.lacks(launch) for launch in launches)
        return next((why for why in answers if why is not None), None)

    def _join(self, rule: Rule, match: Match) -> None:
        joined = self.body.join(match.members, rule.form(match))
        self.fusions.append(Fusion(rule.name, joined.sources))


def _siblings(body: Body, keys: list[int]) -> Match:
    roles = {str(at): key for at, key in enumerate(keys)}
    return Match(body, roles, tree=False)
