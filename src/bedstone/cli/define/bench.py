"""`bedstone define bench`: every Solution of a set on every Workload, judged and timed."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bedstone.cli.define.options import SetArgument, require_known
from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.environment import cache_directory
from bedstone.cli.extras import extra
from bedstone.cli.progress import Stages
from bedstone.cli.table import columns, counted
from bedstone.errors import CallerError, TargetError

if TYPE_CHECKING:
    from bedstone.prove.bench import Skipped
    from bedstone.prove.config import Config
    from bedstone.prove.trace_set import TraceSet
    from bedstone.spec.trace import Trace

FAILED = 1


Names = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Only these; may be repeated.")
]
Device = Annotated[str, typer.Option(metavar="cpu|cuda", help="Where Solutions run.")]
Trials = Annotated[int, typer.Option(min=1, help="Input sets to check.")]
Warmup = Annotated[int, typer.Option(min=0, help="Untimed calls before the timed ones.")]
Iterations = Annotated[int, typer.Option(min=1, help="Timed calls.")]
Samples = Annotated[int, typer.Option(min=1, help="Timed calls to check too.")]
Warm = Annotated[bool, typer.Option("--warm", help="Do not flush caches between calls.")]
Seconds = Annotated[float, typer.Option(min=1, help="Time limit of a Solution.")]
Bound = Annotated[float | None, typer.Option(min=0, help="Tolerance, instead of the Workload's.")]
Share = Annotated[
    float, typer.Option(min=0, max=1, help="Share of values that must be within tolerance.")
]
Bandwidth = Annotated[
    float | None,
    typer.Option(
        min=0, metavar="GB/S", help="The device's memory bandwidth: no call can be faster."
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Skip what this device has a Trace of, for the same code.")
]
StandIn = Annotated[
    bool, typer.Option("--stand-in", help="Make inputs whose stored file is missing.")
]


def command(
    folder: SetArgument,
    definition: Names = None,
    solution: Names = None,
    device: Device = "cpu",
    trials: Trials = 3,
    warmup: Warmup = 3,
    iterations: Iterations = 30,
    samples: Samples = 3,
    seed: Annotated[int, typer.Option(help="Of every input.")] = 0,
    warm: Warm = False,
    seconds: Seconds = 300.0,
    rtol: Bound = None,
    atol: Bound = None,
    matched: Share = 1.0,
    bandwidth: Bandwidth = None,
    resume: Resume = False,
    stand_in: StandIn = False,
    as_json: JsonOption = False,
) -> None:
    """Run Solutions on Workloads and add a Trace of each; exits 1 where one did not pass."""
    with extra("define"):
        from bedstone.prove import bench
    from bedstone.prove.config import Config
    from bedstone.prove.problem import Source
    from bedstone.prove.trace_set import read_trace_set
    from bedstone.spec.workload import Tolerance

    asked = (rtol, atol, matched) != (None, None, 1.0)
    config = Config(
        device=_device(device),
        trials=trials,
        warmup=warmup,
        iterations=iterations,
        samples=samples,
        seed=seed,
        cold=not warm,
        seconds=seconds,
        tolerance=Tolerance(rtol, atol, matched) if asked else None,
        bandwidth=None if bandwidth is None else bandwidth * 1e9,
    )
    traces = read_trace_set(folder)
    _require_known(traces, definition or (), solution or ())
    _tell_left_out(traces, bench.kernels_elsewhere(traces, config.device), config)
    here = bench.device_of(config) if resume else None
    tasks = bench.plan_tasks(
        traces, definition or (), solution or (), on=config.device, device=here
    )
    with Stages() as stages:
        source = Source(folder, stand_in)
        runs = bench.bench(
            traces,
            tasks,
            config,
            source,
            lambda d, t, n: stages.step(n, d + 1, t),
            cache=cache_directory() / "solutions",
        )
        results = list(runs)
    _report(results, config, as_json=as_json)


def _require_known(
    traces: "TraceSet", definitions: Sequence[str], solutions: Sequence[str]
) -> None:
    """Refuse a set that holds nothing to run, and names it does not have: a `CallerError`."""
    if not traces.definitions:
        raise CallerError(f"`{traces.root}` holds no Definitions: nothing can be run")
    require_known("--definition", definitions, traces.definitions)
    named = {each.name for those in traces.solutions.values() for each in those}
    require_known("--solution", solutions, named)


def _tell_left_out(traces: "TraceSet", elsewhere: int, config: "Config") -> None:
    """Say which files could not be read, and how many kernels are for another device."""
    for left_out in traces.unreadable:
        print(f"left out: {left_out}", file=sys.stderr)
    if elsewhere:
        kernels = counted(elsewhere, "kernel")
        print(f"left out: {kernels} for another device than `{config.device}`", file=sys.stderr)


def _device(name: str) -> Any:  # noqa: ANN401  (a literal)
    import torch

    if name not in ("cpu", "cuda"):
        raise TargetError(f"`--device` is `{name}`, expected `cpu` or `cuda`")
    if name == "cuda" and not torch.cuda.is_available():
        raise TargetError("`--device cuda`: PyTorch finds no CUDA device")
    return name


def _report(results: list["Trace | Skipped"], config: "Config", *, as_json: bool) -> None:
    from bedstone.prove.bench import Skipped
    from bedstone.spec.dialect.trace import emit_trace

    skipped = [each for each in results if isinstance(each, Skipped)]
    traces = [each for each in results if not isinstance(each, Skipped)]
    if as_json:
        print_json(
            {
                "config": config.json(),
                "traces": [emit_trace(trace).value for trace in traces],
                "skipped": [
                    {"definition": s.definition, "workload": s.workload, "why": s.why}
                    for s in skipped
                ],
            }
        )
    else:
        print("\n".join(_lines(traces)))
        for each in skipped:
            print(f"skipped: {each.definition} {each.workload}: {each.why}", file=sys.stderr)
    if skipped or not all(trace.passed for trace in traces):
        raise SystemExit(FAILED)


def _lines(traces: list["Trace"]) -> list[str]:
    header = ("definition", "sizes", "solution", "status", "ms", "reference ms", "speed-up")
    rows = [header, *map(_row, traces)]
    passed = sum(trace.passed for trace in traces)
    return [*columns(rows), f"{counted(len(traces), 'run')}, {passed} passed"]


def _row(trace: "Trace") -> tuple[str, ...]:
    from bedstone.spec.trace import Passed

    sizes = " ".join(f"{name}={size}" for name, size in trace.workload.axes.items())
    numbers: tuple[str, ...] = ("", "", "")
    evaluation = trace.evaluation
    if evaluation is not None and isinstance(evaluation.outcome, Passed):
        p = evaluation.outcome.performance
        times = (p.latency_ms, p.reference_latency_ms)
        numbers = (*(f"{ms:.4g}" for ms in times), f"{p.speedup_factor:.2f}x")
    status = "" if evaluation is None else evaluation.status
    return (trace.definition, sizes, trace.solution or "", status, *numbers)
