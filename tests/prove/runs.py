"""Evaluations with few and warm calls: what tests of outcomes need."""

from bedstone.prove.config import Config
from bedstone.prove.evaluate import evaluate
from bedstone.prove.measured import Baseline
from bedstone.prove.problem import Problem, Source
from definitions import definition, solution, workload

QUICK = {"trials": 2, "warmup": 1, "iterations": 6, "cold": False, "seconds": 60.0}


def problem(of=None, on=None, **config):
    return Problem(of or definition(), on or workload(), Config(**QUICK | config), Source())


def run(zygote, code, of=None, on=None, *, passing=False, **config):
    """The evaluation of a Solution's code."""
    asked = problem(of, on, **config)
    candidate = solution(code, of=asked.definition.name, passing=passing)
    return evaluate(asked, candidate, zygote, Baseline("reference", 1.0))
