"""How the time of a token grows with the tokens before it, beside what its keys and values take.

    python benchmarks/context.py MODEL.gguf [--json]

A step reads every weight once and the keys and values of all positions before it, so its time is a
line over the context whose slope is at least the bytes of a position over the memory's read rate.
Each round fills a sequence from nothing to the longest context and decodes `--steps` tokens as it
comes by each of `--contexts`; figures are seconds a token, medians of the rounds. `--peer` asks
llama.cpp, with flash attention, to do the same.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from statistics import linear_regression, median
from typing import Any

from sides import (
    OURS,
    PEER,
    THEIRS,
    Side,
    commands,
    compiled,
    machine,
    medians,
    our_command,
    parsed,
    parser,
    read_rate,
)

CONTEXTS = (512, 1024, 2048, 4096, 8192)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run all rounds; the record of them."""
    longest = max(options.contexts)
    package, moved = compiled(options)
    if options.peer:
        starts = {n: c for n, c in commands(options, longest).items() if n in {OURS, THEIRS}}
    else:
        starts = {OURS: our_command(options, longest, package)}
    seen: dict[str, dict[str, list[float]]] = {name: {} for name in starts}
    rates: list[float] = []
    sides = {name: Side(command) for name, command in starts.items()}
    for _ in range(options.rounds):
        rates.append(read_rate(options))
        for name, side in sides.items():
            for context, seconds in climb(side, options.contexts, options.steps):
                seen[name].setdefault(str(context), []).append(seconds)
    for side in sides.values():
        side.close()
    least = moved["token_bytes"] / median(rates)
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "model": options.model.name,
        "threads": options.threads,
        "rounds": options.rounds,
        "peer": PEER if options.peer else None,
        "read_bytes_per_second": median(rates),
        "token_bytes": moved["token_bytes"],
        "least_slope": least,
        "sides": {name: medians(values) for name, values in seen.items()},
        "fits": {name: fit(values, options.steps, least) for name, values in seen.items()},
    }


def climb(side: Side, contexts: Sequence[int], steps: int) -> list[tuple[int, float]]:
    """Seconds a token where a sequence has come to each context, its last `steps` decoded."""
    found, length = [], 0
    for context in sorted(contexts):
        side.ask("extend" if length else "prefill", context - steps - length)
        answer = side.ask("decode", steps)
        found.append((context, answer["seconds"] / steps))
        length = context
    return found


def fit(values: Mapping[str, Sequence[float]], steps: int, least: float) -> dict[str, float]:
    """The line through the medians, and the farthest that one lies off it."""
    at = [int(context) - steps / 2 for context in values]
    seconds = [median(of) for of in values.values()]
    slope, start = linear_regression(at, seconds)
    off = max(abs(y / (start + slope * x) - 1) for x, y in zip(at, seconds, strict=True))
    return {"start": start, "slope": slope, "of_least_slope": slope / least, "farthest_off": off}


def lines(record: Mapping[str, Any]) -> list[str]:
    """The record for a person."""
    out = [
        f"{record['token_bytes']} bytes a position, {record['least_slope'] * 1e6:.3f} us to read"
    ]
    for name, values in record["sides"].items():
        told = ", ".join(f"{at}: {of['median'] * 1e3:.2f} ms" for at, of in values.items())
        line = record["fits"][name]
        out.append(f"{name}: {told}")
        out.append(
            f"{'':{len(name)}}  {line['start'] * 1e3:.2f} ms and {line['slope'] * 1e6:.3f} us a "
            f"position, {line['of_least_slope']:.2f} of what its bytes take; no figure is more "
            f"than {line['farthest_off']:.0%} off"
        )
    return out


def main() -> None:
    """Read the command line, measure, print."""
    options = parser(__doc__)
    options.add_argument("--contexts", type=int, nargs="+", default=CONTEXTS)
    options.add_argument("--steps", type=int, default=32, help="tokens to decode at each")
    options.add_argument("--peer", action="store_true", help="llama.cpp too")
    given = parsed(options)
    record = measure(given)
    print(json.dumps(record, indent=1) if given.json else "\n".join(lines(record)))


if __name__ == "__main__":
    main()
