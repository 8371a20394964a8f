"""One Solution on one Problem: is it right, and how long does it take.

Inputs, reference and judge are here; the Solution runs in a child. Every call, timed ones too, has
inputs it has not seen before; outputs of timed calls chosen afterwards are judged like the rest.
"""

import secrets
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path

import torch

from bedstone.prove.distribution import DRAWS, judge_draws, weights_of
from bedstone.prove.environment import environment, flush_bytes
from bedstone.prove.honesty import (
    are_clocks_honest,
    require_honest_clocks,
    require_possible,
    require_untouched,
)
from bedstone.prove.judge import Metrics, judge
from bedstone.prove.lazy import Trial
from bedstone.prove.measured import (
    Baseline,
    Run,
    correctness,
    latencies,
    measured,
    misfits,
    performance,
)
from bedstone.prove.problem import Problem, moved_bytes
from bedstone.prove.sandbox.candidate import Call, Candidate, CandidateError
from bedstone.prove.sandbox.zygote import Zygote
from bedstone.prove.written import judge_output
from bedstone.spec.solution import Solution
from bedstone.spec.trace import (
    Evaluation,
    Failed,
    Outcome,
    Passed,
    WrongNumbers,
)

SECOND_LOOKS = 5
"""How often calls are timed again before clocks that do not agree count as forged: on a machine
with much else to do, every one of a few messages may be delayed."""

Now = Callable[[], datetime]
_Kept = tuple[int, dict[str, torch.Tensor]]


def utc_now() -> datetime:
    """This moment."""
    return datetime.now(UTC)


def evaluate(
    problem: Problem,
    solution: Solution,
    zygote: Zygote,
    baseline: Baseline | None = None,
    now: Now = utc_now,
) -> Evaluation:
    """Try and time a Solution.

    Args:
        problem: Trials and expected outputs.
        solution: Its code is not trusted and runs in a process of its own.
        zygote: What forks that process.
        baseline: What a speed-up is against; the Solution itself where None.
        now: The clock of the timestamp.

    Returns:
        The outcome, whatever it is, with how it was measured.
    """
    config = problem.config
    run, log = Run(), ""
    flush = flush_bytes(config.device) if config.cold else 0
    started = now()
    with (
        tempfile.TemporaryDirectory(prefix="bedstone-") as folder,
        Candidate(zygote, problem.layout, config.device, flush, config.seconds) as candidate,
    ):
        try:
            run.build_ns = candidate.build(solution, Path(folder))
            outcome = _outcome(problem, candidate, run, baseline)
        except CandidateError as error:
            numbers = error.status == "INCORRECT_NUMERICAL"
            outcome = WrongNumbers(correctness(run)) if numbers else Failed(error.status)
            log = f"{error}\n{error.log}"
        log = "\n".join(filter(None, (log.strip(), candidate.log().strip(), misfits(run))))
    return Evaluation(
        outcome=outcome,
        environment=environment(config.device),
        timestamp=started.isoformat(timespec="seconds"),
        log=log,
        record=measured(problem, solution, run, baseline),
    )


def _outcome(
    problem: Problem, candidate: Candidate, run: Run, baseline: Baseline | None
) -> Outcome:
    for number, trial in enumerate(problem.trials):
        if not _try(problem, candidate, number, trial, run):
            return WrongNumbers(correctness(run))
    if not _time(problem, candidate, run):
        return WrongNumbers(correctness(run))
    return Passed(correctness(run), performance(run, baseline))


def _try(problem: Problem, candidate: Candidate, number: int, trial: Trial, run: Run) -> bool:
    """The calls of one trial, judged; whether they are right."""
    if problem.drawn:
        calls = [_called(candidate, number, trial, run) for _ in range(DRAWS)]
        require_untouched(problem.definition, trial.inputs, calls[0])
        run.judged += DRAWS
        return _keep_worst(run, _judge_draws(problem, trial, calls))
    return _judged(problem, trial, _called(candidate, number, trial, run), run)


def _called(candidate: Candidate, number: int, trial: Trial, run: Run) -> dict[str, torch.Tensor]:
    """What one call with a trial's inputs leaves."""
    candidate.prepare(number, trial.inputs)
    call = _checked(candidate.call())
    run.first = run.first or call
    return candidate.fetch(number)


def _checked(call: Call) -> Call:
    if call.hacks:
        raise CandidateError("REWARD_HACK", "; ".join(call.hacks))
    return call


def _judged(problem: Problem, trial: Trial, after: dict[str, torch.Tensor], run: Run) -> bool:
    """Hold what a call left against the reference; the worst of all calls is kept."""
    require_untouched(problem.definition, trial.inputs, after)
    run.judged += 1
    if problem.drawn:
        return _keep_worst(run, _judge_draws(problem, trial, [after]))
    return _keep_worst(
        run,
        {
            output.name: judge_output(
                output,
                trial.inputs.get(output.target or ""),
                after[output.target or output.name],
                trial.expected[output.name],
                problem.tolerance,
            )
            for output in problem.outputs
        },
    )


def _judge_draws(
    problem: Problem, trial: Trial, calls: Sequence[dict[str, torch.Tensor]]
) -> dict[str, Metrics]:
    """Hold what calls with the same inputs drew against what the reference draws."""
    draws = problem.draws(trial)
    metrics = {}
    for output in problem.outputs:
        name = output.name
        weights = weights_of(trial.inputs, trial.expected[name])
        found = [after[output.target or name] for after in calls]
        if weights is None:
            metrics[name] = judge(found[0], trial.expected[name], output.dtype, problem.tolerance)
        else:
            metrics[name] = judge_draws(found, [draw[name] for draw in draws], weights)
    return metrics


def _keep_worst(run: Run, found: dict[str, Metrics]) -> bool:
    for name, metrics in found.items():
        known = run.metrics.get(name)
        if known is None or (known.fits, -known.spread) > (metrics.fits, -metrics.spread):
            run.metrics[name] = metrics
    return all(metrics.fits for metrics in run.metrics.values())


def _time(problem: Problem, candidate: Candidate, run: Run) -> bool:
    """The calls that count; whether those looked at afterwards are right."""
    config = problem.config
    kept: list[_Kept] = []
    numbers = count(config.trials)
    for number in islice(numbers, config.warmup):
        candidate.prepare(number, problem.inputs(number))
        _checked(candidate.call())
    for _ in range(SECOND_LOOKS):
        for number in islice(numbers, config.iterations):
            _time_one(problem, candidate, number, run, kept)
        if are_clocks_honest(run.calls):
            break
    require_honest_clocks(run.calls)
    require_possible(latencies(run), moved_bytes(problem.definition, problem.sizes), config)
    return all(_judged(problem, problem.trial(number), after, run) for number, after in kept)


def _time_one(
    problem: Problem, candidate: Candidate, number: int, run: Run, kept: list[_Kept]
) -> None:
    candidate.prepare(number, problem.inputs(number))
    call = _checked(candidate.call())
    run.calls.append(call)
    # chosen when the call is over: nobody could prepare for being looked at
    at = _chosen(problem.config.samples, len(run.calls))
    if at is not None:
        kept[at : at + 1] = [(number, candidate.fetch(number))]


def _chosen(most: int, seen: int) -> int | None:
    """Which of `most` kept calls the newest of `seen` replaces, so that each is as likely kept."""
    at = seen - 1 if seen <= most else secrets.randbelow(seen)
    return at if at < most else None
