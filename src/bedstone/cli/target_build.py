"""`bedstone target build`: compile the kernels of hardware sets."""

from functools import partial
from typing import Any

from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.environment import cache_directory
from bedstone.cli.progress import Stages
from bedstone.cli.table import columns, counted, size
from bedstone.cli.target_sets import AllOption, HardwareArgument, chosen_sets

_SHOWN_DIGITS = 12


def command(
    hardware: HardwareArgument = None,
    every: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compile every module of a hardware set, of the best this machine runs if none is named."""
    from bedstone.build.audit import compile_set
    from bedstone.target.blob import kernel_set_hash
    from bedstone.target.sources import read_sources

    built: list[dict[str, Any]] = []
    for each in chosen_sets(hardware, every):
        with Stages() as stages:
            told = partial(stages.step, f"compile {each.name}")
            compiled = compile_set(read_sources(each), cache_directory() / "modules", told)
        blobs = compiled.built.blobs
        modules = [
            {
                "module": name,
                "form": blob.form,
                "arch": blob.arch,
                "sha256": blob.sha256,
                "bytes": len(compiled.objects[name]),
                "entries": list(blob.entries),
            }
            for name, blob in sorted(blobs.items())
        ]
        built.append(
            {
                "hardware": each.name,
                "kernel_set": kernel_set_hash(blobs.values()),
                "modules": modules,
            }
        )
    if as_json:
        print_json({"sets": built})
    else:
        print("\n\n".join(_table(each) for each in built))


def _table(built: dict[str, Any]) -> str:
    rows = [
        (
            module["module"],
            module["form"],
            module["arch"],
            module["sha256"][:_SHOWN_DIGITS],
            size(module["bytes"]),
            str(len(module["entries"])),
        )
        for module in built["modules"]
    ]
    title = (
        f"{built['hardware']}: {counted(len(rows), 'module')}, "
        f"kernel set {built['kernel_set'][:_SHOWN_DIGITS]}"
    )
    header = ("module", "form", "arch", "sha256", "size", "entries")
    return "\n".join((title, *(columns([header, *rows]) if rows else ())))
