"""Compiles for the benchmarks: MODEL PACKAGE CACHE NUMERICS; says what bytes a step reads."""

import json
import sys
from contextlib import closing
from pathlib import Path

import bedstone
from bedstone.build.compile import compile_checkpoint
from bedstone.build.request import Options, Request
from bedstone.checkpoint.checkpoint import Checkpoint
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.runtime.load import read_parts


def read_bytes(opened: Checkpoint) -> int:
    """Bytes of all matrices, but of an embedding that is not the last product too."""
    tied = "output.weight" not in opened.tensors
    return sum(
        opened.raw(info).nbytes
        for name, info in opened.tensors.items()
        if len(info.shape) > 1 and (tied or name != "token_embd.weight")
    )


def main() -> None:
    """Make the package, print the number."""
    model, package, cache, numerics = sys.argv[1:]
    with closing(open_checkpoint(model)) as opened:
        request = Request(opened, Options(numerics), Path(cache))
        compile_checkpoint(request, Path(package), lambda _: None)
        states = read_parts(Path(package)).manifest.states.values()
        moved = {
            "step_bytes": read_bytes(opened),
            "token_bytes": sum(state.bytes_per_token for state in states),
            "sources": str(Path(bedstone.__file__).parent),
        }
        print(json.dumps(moved))


if __name__ == "__main__":
    main()
