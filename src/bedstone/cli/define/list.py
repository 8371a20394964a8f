"""`bedstone define list`: what a set holds."""

import sys
from collections.abc import Sized

from bedstone.cli.define.options import SetArgument
from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.table import columns, counted


def command(folder: SetArgument, as_json: JsonOption = False) -> None:
    """List the Definitions of a set with how many Solutions, Workloads and Traces each has."""
    from bedstone.prove.trace_set import read_trace_set

    found = read_trace_set(folder)
    rows = [
        {
            "name": name,
            "op_type": definition.op_type,
            "draft": definition.entry is None,
            "solutions": len(found.solutions.get(name, ())),
            "workloads": len(found.workloads.get(name, ())),
            "traces": len(found.traces.get(name, ())),
        }
        for name, definition in sorted(found.definitions.items())
    ]
    unreadable = [{"path": str(u.path), "message": u.message} for u in found.unreadable]
    if as_json:
        print_json({"definitions": rows, "unreadable": unreadable})
        return
    for left_out in found.unreadable:
        print(f"left out: {left_out}", file=sys.stderr)
    header = ("definition", "op type", "solutions", "workloads", "traces", "")
    table = [
        (
            str(row["name"]),
            str(row["op_type"]),
            *(str(row[key]) for key in ("solutions", "workloads", "traces")),
            "draft" if row["draft"] else "",
        )
        for row in rows
    ]
    print("\n".join(columns([header, *table])))
    print(_total(rows, found.solutions, found.workloads, found.traces))


def _total(rows: Sized, *groups: dict[str, list[object]] | dict[str, list]) -> str:  # type: ignore[type-arg]
    counts = [sum(map(len, group.values())) for group in groups]
    named = zip(counts, ("solution", "workload", "trace"), strict=True)
    return ", ".join([counted(len(rows), "definition"), *(counted(n, word) for n, word in named)])
