"""Answers the benchmark's commands with Bedstone: MODEL THREADS TOKENS PACKAGE."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from bedstone.runtime.generate import Generator
from bedstone.runtime.load import load

PROMPT = 31  # a token's id is its place times this, below what any vocabulary holds


def answers(generator: Generator) -> Iterator[dict[str, Any]]:
    """What each command of the input comes to."""
    for line in sys.stdin:
        what, *numbers = json.loads(line)
        began = perf_counter()
        if what == "prefill":
            generator.reset()
            tokens = [generator.prefill([1 + i * PROMPT % 997 for i in range(numbers[0])])]
        elif what == "decode":
            tokens = list(generator.advance(numbers[0]))
        else:
            status = Path("/proc/self/status").read_text()
            yield {"bytes": 1024 * int(status.partition("VmHWM:")[2].split()[0])}
            continue
        yield {"seconds": perf_counter() - began, "tokens": [int(token) for token in tokens]}


def main() -> None:
    """Load, then answer until the input ends."""
    model, threads, tokens, package = sys.argv[1:]
    with load(Path(package), tokens=int(tokens), checkpoint=model, threads=int(threads)) as session:
        for answer in answers(Generator(session)):
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
