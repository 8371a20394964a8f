"""Hold every kernel of every CPU set against its Definition, at the sizes of all known models.

    PYTHONPATH=src python scripts/prove_cpu_kernels.py measurements/cpu-kernels-proved.json

Each is tried with seeded inputs as `bedstone define bench` tries it, but timed once only. What is
known is written as it becomes known. Exits 1 where one does not pass. `--share 1/2` takes every
second problem, for two processes side by side; `--only PATTERN` takes the entries of that form.
"""

import argparse
import json
import sys
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from bedstone.checkpoint.shapes import shape_names
from bedstone.errors import BedstoneError
from bedstone.library.catalog import cpu_kernels
from bedstone.prove.config import Config
from bedstone.prove.environment import hardware_name
from bedstone.prove.evaluate import evaluate
from bedstone.prove.own.planned import planned_in_every_way, untouched
from bedstone.prove.own.problems import OwnProblem, own_problems
from bedstone.prove.problem import Problem, Source
from bedstone.prove.sandbox.zygote import Zygote
from bedstone.target.cache import user_cache
from bedstone.target.cpu import runnable
from bedstone.target.features import read_features
from bedstone.target.hardware import read_sets
from bedstone.target.sources import read_sources

CONFIG = Config(trials=1, warmup=0, iterations=3, samples=1, cold=False, seconds=900)
BETWEEN = 10
"""Problems from one writing to the next."""


def main() -> int:
    """Try every problem of this share; whether one failed."""
    given = _arguments()
    # a process a core: threads of its own would only wait for each other
    torch.set_num_threads(1)
    problems = _problems(given.only, given.share)
    started = perf_counter()
    status: Counter[str] = Counter()
    failures: list[dict[str, Any]] = []
    sets = runnable(read_sets(), read_features())
    with Zygote(given.cache) as zygote:
        for at, problem in enumerate(problems):
            for found in _tried(problem, sets, zygote):
                status[found["status"]] += 1
                if found["status"] != "PASSED":
                    failures.append(found)
            done = problems[: at + 1]
            if len(done) % BETWEEN == 0 or len(done) == len(problems):
                summary = _summary(done, sets, status, failures)
                summary |= {"of": len(problems), "seconds": round(perf_counter() - started)}
                given.out.write_text(json.dumps(summary, indent=2) + "\n")
    return 1 if failures else 0


def _summary(
    done: list[OwnProblem],
    sets: tuple[str, ...],
    status: Counter[str],
    failures: list[dict[str, Any]],
) -> dict[str, Any]:
    return {
        "hardware": hardware_name("cpu"),
        "sets": sets,
        "models": shape_names(),
        "entries": len({p.kernel.entry for p in done}),
        "definitions": len(done),
        "workloads": sum(len(p.workloads) for p in done),
        "evaluations": dict(status),
        "failures": failures,
        "config": CONFIG.json(),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="*")
    parser.add_argument("--share", default="1/1")
    parser.add_argument("--cache", type=Path, default=user_cache() / "solutions")
    return parser.parse_args()


def _problems(only: str, share: str) -> list[OwnProblem]:
    kernels = cpu_kernels()
    calls = list(planned_in_every_way(shape_names(), kernels))
    every = own_problems([*calls, *untouched(calls, kernels)], kernels)
    kept = [problem for problem in every if fnmatchcase(problem.kernel.entry, only)]
    own, of = map(int, share.split("/"))
    # by the digest at a name's end: entries and models mixed, so that shares take equally long
    kept.sort(key=lambda problem: problem.definition.name[::-1])
    return kept[own - 1 :: of]


def _tried(problem: OwnProblem, sets: tuple[str, ...], zygote: Zygote) -> list[dict[str, Any]]:
    solutions = problem.solutions(read_sources(read_sets()[name]) for name in sets)
    found = []
    for workload in problem.workloads:
        where = {"definition": problem.definition.name, "axes": dict(workload.axes)}
        try:
            posed = Problem(problem.definition, workload, CONFIG, Source())
        except BedstoneError as error:
            found.append({**where, "status": "SKIPPED", "log": str(error)})
            continue
        for solution in solutions:
            evaluation = evaluate(posed, solution, zygote)
            found.append({
                **where,
                "solution": solution.name,
                "status": evaluation.status,
                "log": evaluation.log[:500],
            })  # fmt: skip
    return found


if __name__ == "__main__":
    sys.exit(main())
