"""`bedstone define build`: the kernels among a set's Solutions compiled, for `define bench`."""

import sys
from functools import partial

from bedstone.cli.define.options import SetArgument
from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.environment import cache_directory
from bedstone.cli.extras import extra
from bedstone.cli.progress import Stages
from bedstone.cli.table import counted

FAILED = 1


def command(folder: SetArgument, as_json: JsonOption = False) -> None:
    """Compile kernels in C and CUDA; needs no GPU. Exits 1 where one does not compile."""
    with extra("define"):
        from bedstone.prove.build import build_kernels
        from bedstone.prove.trace_set import read_trace_set

    traces = read_trace_set(folder)
    for left_out in traces.unreadable:
        print(f"left out: {left_out}", file=sys.stderr)
    every = [solution for each in traces.solutions.values() for solution in each]
    cache = cache_directory()
    with Stages() as stages:
        told = partial(stages.step, "compile")
        built = build_kernels(every, cache / "solutions", cache / "modules", told)
    for name, why in built.failed.items():
        print(f"{name}: {why}", file=sys.stderr)
    if as_json:
        counts = {"modules": built.modules, "compiled": built.compiled}
        print_json({**counts, "failed": built.failed})
    else:
        kept = f"{built.compiled} compiled, {len(built.failed)} failed"
        print(f"{counted(built.modules, 'module')}: {kept}")
    if built.failed:
        raise SystemExit(FAILED)
