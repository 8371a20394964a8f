from dataclasses import replace

import numpy as np
import pytest

from bedstone.prove.swap.measure import Distance, LogitDistance
from bedstone.prove.swap.verdict import RULES, Bounds, Evidence, Spans, judge

GOOD = Evidence(logits=LogitDistance(rows=9), floor=LogitDistance(rows=9), compared=3)
NOISY = replace(GOOD, floor=LogitDistance(rows=9, differing=9, kl=0.1, flips=2))


def with_spans(evidence: Evidence, **numbers) -> Evidence:
    return replace(evidence, spans=Spans(numbers=Distance(elements=9, **numbers)))


def with_logits(evidence: Evidence, **changes) -> Evidence:
    return replace(evidence, logits=LogitDistance(rows=9, **changes))


NEAR = with_spans(GOOD, bits=4, values=4, relative=1e-6)

CASES = {
    "identical": [Evidence(identical=True)],
    "apart": [Evidence(apart=1)],
    "crash": [Evidence(crashed=True)],
    "stalled": [Evidence(stalled=True)],
    "domain": [replace(GOOD, strange=1, spans=Spans(outside=1))],
    "outside": [replace(GOOD, spans=Spans(outside=1)), replace(GOOD, weights=True)],
    "not finite": [with_spans(GOOD, broken=1), with_logits(GOOD, broken=1)],
    "restless": [replace(GOOD, restless=1)],
    "stale": [replace(GOOD, stale=1)],
    "picks": [replace(GOOD, spans=Spans(picks=1))],
    "drift": [
        with_spans(GOOD, values=1, relative=0.006),
        with_spans(GOOD, values=1, peak=0.2),
        replace(NEAR, lasting=Distance(9, 4, 4, relative=6e-4)),
    ],
    "flip": [with_logits(NEAR, differing=1, kl=0.02, flips=1, over=1, beyond=1)],
    "undriven": [replace(GOOD, undriven=("p",)), replace(GOOD, compared=0)],
    "uneven": [replace(NEAR, uneven=1)],
    "lasting": [
        replace(NEAR, lasting=Distance(9, 4, 4, peak=6e-7)),
        replace(NEAR, lasting=Distance(9, 4, 4, relative=4e-4, peak=1e-3)),
    ],
    "bit-identical": [GOOD],
    "value-identical": [with_spans(GOOD, bits=2)],
    "logit evidence": [
        NEAR,
        replace(NEAR, lasting=Distance(9, 4, 4, relative=1e-7, peak=4e-7)),
        with_logits(NEAR, differing=5, kl=0.009),
        with_logits(NEAR, differing=5, kl=0.009, flips=1, margin=0.1),
        replace(GOOD, unreplayed=1),
        replace(NEAR, open=2),
    ],
    "within noise": [
        with_logits(NOISY, differing=9, kl=0.09, flips=2, margin=1.0, over=2, beyond=2)
    ],
    "undecided": [
        with_logits(NEAR, differing=5, kl=0.011, over=1),
        with_logits(NEAR, blind=1),
        replace(NEAR, open=3),
        replace(NEAR, logits=LogitDistance()),
        with_logits(NOISY, differing=9, kl=0.11, over=2),
        replace(NEAR, spans=Spans(numbers=Distance(elements=9), exact=Distance(9, 1, 1))),
    ],
}


@pytest.mark.parametrize(
    ("rule", "evidence"), [(rule, each) for rule, cases in CASES.items() for each in cases]
)
def test_a_rule_decides(rule, evidence):
    assert judge(evidence, Bounds()).rule == rule


def test_every_rule_has_a_case():
    assert set(CASES) == {rule.name for rule in RULES}


def test_a_row_may_diverge_ten_times_as_far_as_a_does_there_with_other_last_bits():
    limits = Bounds(kl=0.01).widened(np.array([0.0, 0.0005, 0.03, np.nan]))
    assert limits == pytest.approx([0.01, 0.01, 0.3, 0.01])


def test_a_row_that_hangs_on_last_bits_is_open():
    assert Bounds(kl=0.01).widened(np.array([0.11, np.inf, 0.09])).tolist() == [
        np.inf,
        np.inf,
        pytest.approx(0.9),
    ]


def test_noise_of_a_excuses_as_much_in_b():
    noise = Spans(numbers=Distance(elements=9, relative=0.2, peak=0.5))
    evidence = replace(with_spans(NOISY, values=9, relative=0.1, peak=0.4), noise=noise)
    assert judge(evidence, Bounds()).word == "PASS"
