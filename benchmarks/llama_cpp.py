"""Bedstone and llama.cpp on one GGUF file and this machine's cores, side by side.

    python benchmarks/llama_cpp.py MODEL.gguf [--json] > measurements/DATE-cpu-llama-cpp.json

llama.cpp comes as `llama-cpp-python` from PyPI, built from source for this machine in an
environment of its own under `--cache`; that takes a quarter of an hour of one core. Each side lives
in a process of its own, with as many threads, and answers in turn: a round is the memory's read
rate, then each side's prefills and its decode, the other side first every second round. llama.cpp
is there twice, with flash attention and without; a ratio is over the better of its medians.

Both get the same token ids, take the most likely token and make no text. `first` is the time from
the start of a process to its first token, Bedstone's package compiled before; `peak` the most
memory a process held, pages of mapped files included. What is compared is greedy and may differ in
the last bits: `agree` says how many first tokens of the two are the same.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Any

from sides import (
    OURS,
    PEER,
    THEIRS,
    THEIRS_PLAIN,
    Side,
    commands,
    compiled,
    machine,
    medians,
    parsed,
    parser,
    read_rate,
)

SIDES = (OURS, THEIRS, THEIRS_PLAIN)
PREFILLS = (128, 512, 2048)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run all rounds; the record of them."""
    starts = commands(options, max(options.prefills) + options.steps + 64)
    step_bytes = compiled(options)[1]["step_bytes"]
    seen: dict[str, dict[str, list[float]]] = {name: {} for name in SIDES}
    rates: list[float] = []
    tokens: dict[str, list[int]] = {}
    for number in range(options.rounds):
        for name in _in_turn(number):
            side = Side(starts[name])
            seen[name].setdefault("first", []).append(side.first)
            side.close()
    sides = {name: Side(starts[name]) for name in SIDES}
    for number in range(-1, options.rounds):
        rates.append(read_rate(options))
        for name in _in_turn(number):
            tokens[name] = _round(sides[name], options, seen[name] if number >= 0 else {})
    for name, side in sides.items():
        seen[name]["peak"] = [side.ask("peak")["bytes"]]
        side.close()
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "model": options.model.name,
        "threads": options.threads,
        "rounds": options.rounds,
        "peer": PEER,
        "read_bytes_per_second": median(rates),
        "step_bytes": step_bytes,
        "agree": _agreeing(*(tokens[name] for name in SIDES[:2])),
        "sides": {name: medians(values) for name, values in seen.items()},
        **ratios(seen, step_bytes / median(rates)),
    }


def _in_turn(number: int) -> Sequence[str]:
    return SIDES if number % 2 else SIDES[::-1]


def _round(side: Side, options: argparse.Namespace, seen: dict[str, list[float]]) -> list[int]:
    """One side's turn: rates in tokens a second. The tokens it decoded."""
    for length in options.prefills:
        answer = side.ask("prefill", length, 0)
        seen.setdefault(f"prefill{length}", []).append(length / answer["seconds"])
    side.ask("prefill", 128, 0)
    answer = side.ask("decode", options.steps)
    seen.setdefault("decode", []).append(options.steps / answer["seconds"])
    taken: list[int] = answer["tokens"]
    return taken


def ratios(seen: Mapping[str, Mapping[str, Sequence[float]]], limit: float) -> dict[str, float]:
    """Ours over theirs, the better of theirs; `limit` is seconds a step at the read rate."""
    ours, *theirs = (seen[name] for name in SIDES)
    found: dict[str, float] = {}
    for what in ours:
        best: Callable[..., float] = min if what in ("first", "peak") else max
        found[f"{what}_ratio"] = median(ours[what]) / best(median(of[what]) for of in theirs)
    found["decode_of_read_rate"] = median(ours["decode"]) * limit
    found["peer_decode_of_read_rate"] = max(median(of["decode"]) for of in theirs) * limit
    return found


def _agreeing(a: Sequence[int], b: Sequence[int]) -> int:
    """How many first tokens are the same."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), len(a))


def lines(record: Mapping[str, Any]) -> list[str]:
    """The record for a person."""
    sides = record["sides"]
    out = [f"{'':14}" + "".join(f"{name[:18]:>20}" for name in SIDES) + f"{'ratio':>9}"]
    for what in sides[SIDES[0]]:
        values = "".join(f"{sides[name][what]['median']:20.4g}" for name in SIDES)
        out.append(f"{what:14}{values}{record[f'{what}_ratio']:9.3f}")
    rate = record["read_bytes_per_second"] / 1e9
    ours, theirs = record["decode_of_read_rate"], record["peer_decode_of_read_rate"]
    out.append(
        f"reads {rate:.1f} GB/s; decode is at {ours:.0%} of that, the peer's at {theirs:.0%}"
    )
    out.append(f"the first {record['agree']} tokens agree; {record['rounds']} rounds")
    return out


def main() -> None:
    """Read the command line, measure, print."""
    options = parser(__doc__)
    options.add_argument("--prefills", type=int, nargs="+", default=PREFILLS)
    options.add_argument("--steps", type=int, default=128, help="tokens to decode")
    given = parsed(options)
    record = measure(given)
    print(json.dumps(record, indent=1) if given.json else "\n".join(lines(record)))


if __name__ == "__main__":
    main()
