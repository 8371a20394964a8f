"""Evaluations that were never run: what tests of Traces start from."""

from bedstone.spec.trace import Correctness, Environment, Evaluation, Failed, Passed, Performance


def passed(milliseconds, reference=4.0, *, hardware="H200", at="2026-01-01T00:00:00", **record):
    ratio = reference / milliseconds if milliseconds else 0.0
    outcome = Passed(Correctness(), Performance(milliseconds, reference, ratio))
    return Evaluation(outcome, Environment(hardware), at, record=record)


def failed(status="TIMEOUT", *, hardware="H200", at="2026-01-01T00:00:00"):
    return Evaluation(Failed(status), Environment(hardware), at)
