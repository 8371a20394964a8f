"""`bedstone show`: what a manifest is."""

from collections import Counter
from dataclasses import asdict
from typing import Annotated, Any

import typer

from bedstone.cli.document import Document, JsonOption, ManifestArgument, print_json
from bedstone.cli.guard import plain
from bedstone.cli.memory import Memory, memory_at, parse_vars
from bedstone.cli.protocol import describe
from bedstone.cli.repeats import spelled
from bedstone.cli.table import columns, counted
from bedstone.spec.manifest import Manifest, Program
from bedstone.verify import Verified
from bedstone.verify.protocol import check_protocol, protocol

_OPS_SHOWN = 40


def command(
    manifest: ManifestArgument,
    vars_: Annotated[
        str,
        typer.Option("--vars", metavar="NAME=N,...", help="Vars to size memory at; others at max."),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Show what a manifest is: programs, ops, memory, modules, protocol."""
    verified = Document.at(manifest).require_verified()
    env = parse_vars(verified.manifest, vars_)
    memory = memory_at(verified.manifest, env)
    if as_json:
        print_json(_json(verified, memory))
    else:
        print(plain("\n".join(_text(verified, memory))))


def _text(verified: Verified, memory: Memory) -> list[str]:
    manifest = verified.manifest
    sections = {
        "programs": _programs(manifest),
        "ops": _ops(manifest),
        f"memory at {memory.where}": memory.lines(),
        "modules": columns(
            (name, module.sha256[:12], module.source)
            for name, module in sorted(manifest.modules.items())
        ),
        "protocol": _protocol(verified),
    }
    lines = [*_head(manifest)]
    for title, body in sections.items():
        lines += ["", title, *(f"  {line}" for line in body or ["none"])]
    return lines


def _head(manifest: Manifest) -> list[str]:
    lines = [f"model {manifest.model}"]
    if manifest.cut is not None:
        lines.append(f"stage {manifest.cut.stage} of {manifest.cut.stages}, cut {manifest.cut.id}")
    for name, members in sorted(manifest.topology.groups.items() if manifest.topology else ()):
        lines.append(f"group {name}, {members} members")
    for name, var in sorted(manifest.vars.items()):
        lines.append(f"var {name}, 1 to {var.max}{f', counts {var.axis}' if var.axis else ''}")
    return lines


def _programs(manifest: Manifest) -> list[str]:
    lines = []
    for name, program in sorted(manifest.programs.items()):
        calls = counted(len(program.calls), "call")
        launches = counted(launch_count(manifest, program), "launch")
        lines.append(f"{name}: {_driving(program)}, {calls}, {launches}")
        lines += [f"  {line}" for line in spelled([call.op for call in program.calls])]
    return lines


def _driving(program: Program) -> str:
    if program.batch is not None:
        return (
            f"{program.batch.groups} x {program.batch.rows} rows"
            f"{f', context {program.batch.context}' if program.batch.context else ''}"
            f"{', captured' if program.graph else ''}"
        )
    if program.derive:
        return "run while weights load"
    return "run once after loading" if program.once else "run by name"


def launch_count(manifest: Manifest, program: Program) -> int:
    """Launches of one run of a program, those under `when` included."""
    return sum(len(manifest.ops[call.op].impl.launches) for call in program.calls)


def _calls(manifest: Manifest) -> Counter[str]:
    return Counter(call.op for p in manifest.programs.values() for call in p.calls)


def _ops(manifest: Manifest) -> list[str]:
    calls = _calls(manifest)
    launches = {name: len(op.impl.launches) for name, op in manifest.ops.items()}
    most = sorted(manifest.ops, key=lambda name: (-calls[name], name))
    lines = columns(
        (name, counted(calls[name], "call"), counted(launches[name], "launch") + " a call")
        for name in most[:_OPS_SHOWN]
    )
    left = len(most) - _OPS_SHOWN
    return [*lines, f"and {left} more"] if left > 0 else lines


def _protocol(verified: Verified) -> list[str]:
    faults = check_protocol(verified)
    if faults:
        return ["no serving loop can drive it:", *(f"  {fault}" for fault in faults)]
    return describe(protocol(verified))


def _json(verified: Verified, memory: Memory) -> dict[str, Any]:
    manifest = verified.manifest
    calls, faults = _calls(manifest), check_protocol(verified)
    return {
        "model": manifest.model,
        "cut": asdict(manifest.cut) if manifest.cut else None,
        "topology": dict(manifest.topology.groups) if manifest.topology else None,
        "vars": {name: asdict(var) for name, var in sorted(manifest.vars.items())},
        "programs": {
            name: {
                "batch": asdict(program.batch) if program.batch else None,
                "once": program.once,
                "derive": program.derive,
                "graph": program.graph,
                "calls": len(program.calls),
                "launches": launch_count(manifest, program),
            }
            for name, program in sorted(manifest.programs.items())
        },
        "ops": {
            name: {"calls": calls[name], "launches": len(op.impl.launches)}
            for name, op in sorted(manifest.ops.items())
        },
        "memory": memory.json(),
        "modules": {name: asdict(module) for name, module in sorted(manifest.modules.items())},
        "protocol": None if faults else asdict(protocol(verified)),
        "protocol_faults": [asdict(fault) for fault in faults],
    }
