"""From evidence to a verdict: a table of rules, of which the first that holds decides. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from bedstone.prove.swap.measure import Distance, LogitDistance, Numbers

Word = Literal["PASS", "FAIL", "INCONCLUSIVE"]
_PEAK = 20
"""One value of many may be off by so many times the drift: large values have large roundings."""

_SWAY = 10
"""In a row B may sway so many times as far as A did: both are samples, of one and of few."""

_OPEN = 10
"""A row is open where A sways so many times the limit: samples of one such row lay between 0.08 and
1.5 nats."""

_MOST_OPEN = 0.25
"""Of all rows so many may be open, and the others be evidence."""

EXIT: dict[Word, int] = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 2}


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far B may be from A: KL of a row of logits in nats, and the drift of a span.

    Drift is the root mean square of the error of what a span writes over that of A's values, `peak`
    the largest error of one value over the same; `lasting` is the drift of the float32 that
    programs of loading leave, which no coding of theirs or before them excuses, and `rounded` the
    most that one value of them is off where only roundings are others: six last bits.
    """

    kl: float = 0.01
    drift: float = 5e-3
    lasting: float = 5e-4
    rounded: float = 5e-7

    def widened(self, sway: Numbers) -> Numbers:
        """The most KL divergence of each row that diverged so far [rows] in A by other last bits.

        It is infinite in *open* rows: what A leaves there hangs on last bits, so B's says nothing.
        """
        held = np.nan_to_num(sway, posinf=np.inf)
        return np.where(held > _OPEN * self.kl, np.inf, np.maximum(self.kl, _SWAY * held))

    @property
    def peak(self) -> float:
        """The most that one value may be off."""
        return _PEAK * self.drift


@dataclass(frozen=True, slots=True)
class Spans:
    """All spans of a side together; `picks` are integers that differ where a span has no float."""

    numbers: Distance = field(default_factory=Distance)
    exact: Distance = field(default_factory=Distance)
    picks: int = 0
    outside: int = 0

    @property
    def same_bits(self) -> bool:
        """Whether everything compared is A's to the bit."""
        return self.numbers.bits == self.exact.bits == 0

    @property
    def same_values(self) -> bool:
        """Whether everything compared has A's values; -0 is 0."""
        return self.numbers.values == self.exact.values == 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found.

    Of B against A: `spans`, `logits`; of A against itself: `noise`, `floor`, and with other last
    bits `sway`. `stale` and `floor_stale` are rows of logits that other bytes in unused memory
    change, `restless` those that differ between two runs of B alike. `undriven` programs changed
    and did not run; `compared` counts spans that were replayed, `unreplayed` those that cannot be;
    `uneven` counts kinds of spans in which B is off in places as no rounding is,
    `strange` counts values of B's outputs outside their domains, `floor_strange` those of A's;
    `open` counts rows that A's own last bits decide; `lasting` are the float32 that programs of
    loading left; `weights` says that B wrote to its weights, `crashed` and `stalled` that it died
    or did not end.
    """

    identical: bool = False
    apart: int = 0
    uneven: int = 0
    strange: int = 0
    floor_strange: int = 0
    crashed: bool = False
    stalled: bool = False
    spans: Spans = field(default_factory=Spans)
    logits: LogitDistance = field(default_factory=LogitDistance)
    lasting: Distance = field(default_factory=Distance)
    noise: Spans = field(default_factory=Spans)
    floor: LogitDistance = field(default_factory=LogitDistance)
    sway: LogitDistance = field(default_factory=LogitDistance)
    open: int = 0
    floor_stale: int = 0
    stale: int = 0
    restless: int = 0
    weights: bool = False
    undriven: tuple[str, ...] = ()
    unreplayed: int = 0
    compared: int = 0

    @property
    def steady(self) -> bool:
        """Whether A gives its own logits again, whatever lies in unused memory."""
        return not (self.floor.differing or self.floor_stale)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The word, the rule that decided and what it says; for a PASS the rule is its evidence."""

    word: Word
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A row: where it holds, `word` is the verdict."""

    name: str
    word: Word
    holds: Callable[[Evidence, Bounds], bool]
    reason: str


def _within(e: Evidence, b: Bounds) -> bool:
    """Whether B is near enough to A, span by span and in its logits.

    A token that flips in a row of KL k led by sqrt(2 k) in probability at most (Pinsker), so flips
    need no bound of their own.
    """
    return (
        e.logits.rows > e.logits.blind == 0
        and not e.logits.over
        and e.open <= _MOST_OPEN * e.logits.rows
        and e.spans.numbers.relative <= b.drift
        and e.spans.numbers.peak <= b.peak
        and e.lasting.relative <= b.lasting
        and not e.spans.exact.values
    )


def _drifts(e: Evidence, b: Bounds) -> bool:
    """Whether a span's values are too far off, and farther than A's are from their own."""
    mine, noise = e.spans.numbers, e.noise.numbers
    if e.lasting.relative > b.lasting:
        return True
    return mine.relative > max(b.drift, noise.relative) or mine.peak > max(b.peak, noise.peak)


def _within_noise(e: Evidence, _: Bounds) -> bool:
    return (
        not (e.steady or e.logits.blind)
        and e.logits.kl <= e.floor.kl
        and e.logits.flips <= e.floor.flips
        and e.spans.numbers.relative <= e.noise.numbers.relative
        and not e.spans.exact.values
    )


RULES: tuple[Rule, ...] = (
    Rule("identical", "PASS", lambda e, _: e.identical, "nothing differs, nothing to test"),
    Rule("apart", "INCONCLUSIVE", lambda e, _: e.apart > 0, "A and B are driven differently"),
    Rule("crash", "FAIL", lambda e, _: e.crashed, "a kernel of B ends the process"),
    Rule("stalled", "INCONCLUSIVE", lambda e, _: e.stalled, "B does not end in time"),
    Rule(
        "domain",
        "FAIL",
        lambda e, _: e.strange > e.floor_strange,
        "an output of B has values outside its declared domain",
    ),
    Rule(
        "outside",
        "FAIL",
        lambda e, _: e.spans.outside > e.noise.outside or e.weights,
        "B writes where A does not",
    ),
    Rule(
        "not finite",
        "FAIL",
        lambda e, _: e.spans.numbers.broken > e.noise.numbers.broken or e.logits.broken > 0,
        "B gives values that are not finite where A's are",
    ),
    Rule(
        "restless",
        "INCONCLUSIVE",
        lambda e, _: e.restless > 0 and e.steady,
        "B does not reproduce its own logits, A does",
    ),
    Rule(
        "stale",
        "FAIL",
        lambda e, _: e.stale > 0 and e.steady,
        "the contents of unused memory change B's logits",
    ),
    Rule("picks", "FAIL", lambda e, _: e.spans.picks > 0, "B chooses other integers than A"),
    Rule(
        "drift",
        "FAIL",
        _drifts,
        "a span of B is farther from A than its bound",
    ),
    Rule(
        "flip",
        "FAIL",
        lambda e, _: e.logits.beyond > 0 and e.steady,
        "the most likely token changes in a row beyond the KL limit",
    ),
    Rule(
        "undriven",
        "INCONCLUSIVE",
        lambda e, _: bool(e.undriven) or not (e.compared or e.unreplayed),
        "a changed program was not driven",
    ),
    Rule(
        "uneven",
        "INCONCLUSIVE",
        lambda e, _: e.uneven > 0 and e.steady,
        "B's error in some spans is far above that in others of their kind, as no rounding is",
    ),
    Rule(
        "lasting",
        "INCONCLUSIVE",
        lambda e, b: e.lasting.peak > b.rounded,
        "what B's loading programs leave is off by more than float32 rounding",
    ),
    Rule(
        "bit-identical",
        "PASS",
        lambda e, _: e.spans.same_bits and not e.unreplayed and not e.logits.differing,
        "every span equals A's bit for bit, every logit in value",
    ),
    Rule(
        "value-identical",
        "PASS",
        lambda e, _: e.spans.same_values and not e.unreplayed and not e.logits.differing,
        "every span and every logit equals A's in value",
    ),
    Rule(
        "logit evidence",
        "PASS",
        _within,
        "spans and logits are within their bounds",
    ),
    Rule("within noise", "PASS", _within_noise, "B is no farther from A than A is from itself"),
    Rule("undecided", "INCONCLUSIVE", lambda *_: True, "no rule accepts or refuses the swap"),
)
"""In order of precedence."""


def judge(evidence: Evidence, bounds: Bounds) -> Verdict:
    """The verdict of the first rule that holds."""
    rule = next(rule for rule in RULES if rule.holds(evidence, bounds))
    return Verdict(rule.word, rule.name, rule.reason)
