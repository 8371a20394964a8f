"""Answers the benchmarks' commands with Bedstone: MODEL THREADS TOKENS PACKAGE CACHE."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from bedstone.runtime.generate import Generator
from bedstone.runtime.load import LoadOptions, load
from bedstone.runtime.session import Session

PROMPT = 31  # a token's id is its place times this, below what any vocabulary holds


def logits(generator: Generator, session: Session, path: str, *ids: int) -> list[int]:
    """Write the logits after each of `ids` to a file; the most likely tokens."""
    generator.reset()
    rows, tokens = [], []
    for token in ids:
        tokens.append(generator.prefill([token]))
        rows.append(session.read("logits")[0])
    np.save(path, np.stack(rows))
    return tokens


def answers(generator: Generator, session: Session) -> Iterator[dict[str, Any]]:
    """What each command of the input comes to."""
    for line in sys.stdin:
        what, *numbers = json.loads(line)
        began = perf_counter()
        if what == "prefill":
            generator.reset()
            tokens = [generator.prefill([1 + i * PROMPT % 997 for i in range(numbers[0])])]
        elif what == "extend":
            tokens = [generator.prefill([1 + i * PROMPT % 997 for i in range(numbers[0])])]
        elif what == "decode":
            tokens = list(generator.advance(numbers[0]))
        elif what == "logits":
            tokens = logits(generator, session, *numbers)
        else:
            status = Path("/proc/self/status").read_text()
            yield {"bytes": 1024 * int(status.partition("VmHWM:")[2].split()[0])}
            continue
        yield {"seconds": perf_counter() - began, "tokens": [int(token) for token in tokens]}


def main() -> None:
    """Load, then answer until the input ends."""
    model, threads, tokens, package, cache = sys.argv[1:]
    given: LoadOptions = {"tokens": int(tokens), "checkpoint": model, "threads": int(threads)}
    with load(Path(package), cache=cache, **given) as session:
        for answer in answers(Generator(session), session):
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
