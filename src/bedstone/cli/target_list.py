"""`bedstone target list`: every hardware set, and whether this machine runs it."""

from typing import Any

from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.table import columns


def command(as_json: JsonOption = False) -> None:
    """List the hardware sets, the models each serves, and which of them this machine runs."""
    from bedstone.target.cpu import refuses, runnable
    from bedstone.target.features import read_features
    from bedstone.target.gpu import read_gpus, refuses_gpu
    from bedstone.target.hardware import read_sets
    from bedstone.target.models import read_models

    sets, features, gpus = read_sets(), read_features(), read_gpus()
    best = runnable(sets, features)[:1]
    rows: list[dict[str, Any]] = []
    for name, each in sets.items():
        if each.form is None:
            continue
        if each.vendor == "cpu":
            refusal = refuses(each, features)
        else:
            refusal = refuses_gpu(each, gpus, sets.values())
        rows.append(
            {
                "hardware": name,
                "arch": each.arch,
                "form": each.form,
                "inherits": each.parent.name if each.parent else None,
                "models": list(read_models(each)),
                "runs": refusal is None,
                "auto": name in best,
                "why": refusal,
            }
        )
    if as_json:
        print_json({"targets": rows})
        return
    print("\n".join(columns([("hardware", "arch", "form", "models", "here"), *map(_line, rows)])))


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    here = row["why"] or ("runs; auto takes it" if row["auto"] else "runs")
    return row["hardware"], row["arch"], row["form"], str(len(row["models"])), here
