"""`bedstone define apply`: the Solution that Traces recommend, and why not the others."""

from typing import Annotated, get_args

import typer

from bedstone.cli.define.options import SetArgument, sizes_of
from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.table import columns
from bedstone.errors import CallerError
from bedstone.spec.dialect.solution import emit_solution

NONE_FOUND = 1


def command(
    folder: SetArgument,
    name: Annotated[str, typer.Argument(metavar="DEFINITION", help="The Definition to compute.")],
    axis: Annotated[
        list[str],
        typer.Option(metavar="AXIS=SIZE", help="A size; one for each variable axis."),
    ],
    hardware: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The device as Traces name it; by default the only one."),
    ] = None,
    policy: Annotated[
        str,
        typer.Option(metavar="exact|nearest", help="Whether a Trace's sizes must match exactly."),
    ] = "exact",
    source: Annotated[bool, typer.Option("--source", help="Print its files too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Choose the fastest Solution that passed at these sizes; exits 1 where there is none."""
    from bedstone.prove.choose import Policy, choose
    from bedstone.prove.trace_set import read_trace_set

    if policy not in get_args(Policy):
        raise CallerError(f"`--policy` is `{policy}`, expected `exact` or `nearest`")
    found = read_trace_set(folder)
    definition = found.definition(name)
    traces, solutions = found.traces.get(name, []), found.solutions.get(name, [])
    sizes = sizes_of(axis)
    missing = [each for each in definition.var_axes if each not in sizes]
    if missing:
        raise CallerError(f"`{name}` has the variable axis `{missing[0]}`: expected `--axis`")
    devices = sorted({t.evaluation.environment.hardware for t in traces if t.evaluation})
    if hardware is None and len(devices) != 1:
        listed = ", ".join(f"`{device}`" for device in devices) or "none"
        raise CallerError(f"`{name}` has Traces of {listed}: expected `--hardware`")
    device = hardware or devices[0]
    choice = choose(definition, solutions, traces, sizes, device, policy)  # type: ignore[arg-type]
    chosen = choice.solution
    if as_json:
        print_json(
            {
                "hardware": device,
                "solution": None if chosen is None else emit_solution(chosen, "fib").value,
                "latency_ms": choice.latency_ms,
                "measured_at": choice.measured_at,
                "others": {reason.solution: reason.why for reason in choice.others},
            }
        )
    else:
        verdict = "no solution" if chosen is None else f"{chosen.name}: {choice.latency_ms:.4g} ms"
        print(f"{verdict} on {device}")
        rows = [(f"  not {reason.solution}", reason.why) for reason in choice.others]
        print("\n".join(columns(rows)) if rows else "  no other solution")
        for file in chosen.sources if chosen is not None and source else ():
            print(f"\n--- {file.path}\n{file.content}")
    if chosen is None:
        raise SystemExit(NONE_FOUND)
