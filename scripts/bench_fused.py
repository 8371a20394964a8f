"""What the lane's fusions are worth on this machine: one checkpoint fused and not, in turn.

    python scripts/bench_fused.py CHECKPOINT [--json] > measurements/DATE-MACHINE.json

Both sides are compiled in this process, and loaded twice in opposite orders: where a session's
memory comes to lie is worth some percents too. A round feeds the prompt and takes the steps on
each, the other side first every second round, so what else the machine does falls on both alike.
Rates are medians over the rounds, in tokens a second. Both must make the same tokens: else it ends
with 1. The unfused side holds every rule of the lane back.
"""

import argparse
import json
import os
import platform
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from bedstone.build.compile import compile_checkpoint
from bedstone.build.request import Options, Package, Request
from bedstone.checkpoint.checkpoint import Checkpoint
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.lane.plan import RULES
from bedstone.runtime.generate import Generator
from bedstone.runtime.load import load
from bedstone.runtime.session import Session
from bedstone.spec.package import PLAN
from bedstone.spec.release import VERSION

TEXT = (
    "The compiler reads a model once and writes down every launch it will make, in order, with "
    "the memory each of them reads and writes. What is written down can be checked before it runs. "
)
SIDES: Mapping[str, tuple[str, ...]] = {"fused": (), "unfused": RULES}


@dataclass
class Side:
    """One way to compile it; rates in tokens a second, a value a round."""

    launches: int
    generators: list[Generator] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    prefill: list[float] = field(default_factory=list)
    decode: list[float] = field(default_factory=list)

    def round(self, number: int, prompt: Sequence[int], steps: int) -> None:
        """Feed the prompt, take the steps, note how long each took."""
        generator = self.generators[number // 2 % 2]
        generator.reset()
        began = perf_counter()
        first = generator.prefill(prompt)
        fed = perf_counter()
        self.tokens = [first, *generator.advance(steps)]
        done = perf_counter()
        self.prefill.append(len(prompt) / (fed - began))
        self.decode.append(steps / (done - fed))

    def json(self) -> dict[str, Any]:
        """The side's medians and all it measured."""
        return {
            "launches_a_step": self.launches,
            "prefill_tokens_per_second": median(self.prefill),
            "decode_tokens_per_second": median(self.decode),
            "prefill_rounds": [round(rate, 1) for rate in self.prefill],
            "decode_rounds": [round(rate, 1) for rate in self.decode],
        }


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Compile and load both sides, run the rounds; the record of them."""
    with ExitStack() as stack:
        opened = stack.enter_context(closing(open_checkpoint(options.checkpoint)))
        packages = {name: _compiled(opened, name, options, folder) for name in SIDES}
        sides = {name: Side(_launches(package)) for name, package in packages.items()}
        for name in (*SIDES, *reversed(SIDES)):
            session = _loaded(packages[name], opened, options)
            sides[name].generators.append(Generator(stack.enter_context(session)))
        ids = opened.tokenizer.encode(TEXT * 40, special=False)[: options.prompt]
        load_before = os.getloadavg()
        for number in range(-4, options.rounds):
            for side in list(sides.values())[:: 1 if number % 2 else -1]:
                side.round(number, ids, options.steps)
                if number < 0:  # the first meet cold caches
                    side.prefill.clear()
                    side.decode.clear()
        text = opened.tokenizer.decode(sides["fused"].tokens)
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "bedstone": VERSION,
        "machine": {"cpu": _cpu(), "cores": os.cpu_count(), "kernel": platform.release()},
        "load_average": {"before": load_before[0], "after": os.getloadavg()[0]},
        "command": shlex.join(["python", *sys.argv]),
        "checkpoint": options.checkpoint,
        "numerics": options.numerics,
        "prompt_tokens": len(ids),
        "steps": options.steps,
        "rounds": options.rounds,
        **{name: side.json() for name, side in sides.items()},
        "ratio": {what: _ratio(sides, what) for what in ("prefill", "decode")},
        "text_equal": sides["fused"].tokens == sides["unfused"].tokens,
        "text": text,
    }


def _compiled(opened: Checkpoint, name: str, options: argparse.Namespace, folder: Path) -> Package:
    wanted = Options(options.numerics, held=SIDES[name])
    request = Request(opened, wanted, folder / "cache")
    return compile_checkpoint(request, folder / name, lambda _: None)


def _loaded(package: Package, opened: Checkpoint, options: argparse.Namespace) -> Session:
    tokens = package.lock.pages(options.prompt + options.steps + 1)
    return load(package.path, tokens=tokens, checkpoint=opened, threads=options.threads)


def _launches(package: Package) -> int:
    launches: int = json.loads((package.path / PLAN).read_text())["decode"]["launches"]
    return launches


def _ratio(sides: Mapping[str, Side], what: str) -> dict[str, float]:
    """How much faster the fused side is: by the medians, and in the median round."""
    fused, unfused = (getattr(sides[name], what) for name in ("fused", "unfused"))
    rounds = [ours / theirs for ours, theirs in zip(fused, unfused, strict=True)]
    return {"of_medians": median(fused) / median(unfused), "of_rounds": median(rounds)}


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def lines(record: Mapping[str, Any]) -> list[str]:
    """The record for a person."""
    out = [f"{'':8} {'launches':>8} {'prefill':>9} {'decode':>9}   tokens/s"]
    for name in SIDES:
        side = record[name]
        rates = [side[f"{what}_tokens_per_second"] for what in ("prefill", "decode")]
        out.append(f"{name:8} {side['launches_a_step']:8} {rates[0]:9.1f} {rates[1]:9.1f}")
    ratios = [record["ratio"][what]["of_medians"] for what in ("prefill", "decode")]
    out.append(f"{'ratio':8} {'':8} {ratios[0]:9.3f} {ratios[1]:9.3f}")
    same = "the same" if record["text_equal"] else "ANOTHER"
    return [*out, f"{record['rounds']} rounds, {same} text"]


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint")
    parser.add_argument("--numerics", choices=("quantized", "precise"), default="quantized")
    parser.add_argument("--prompt", type=int, default=256, help="tokens of the prompt")
    parser.add_argument("--steps", type=int, default=128, help="tokens to decode")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        record = measure(options, Path(folder))
    print(json.dumps(record, indent=1) if options.json else "\n".join(lines(record)))
    sys.exit(0 if record["text_equal"] else 1)


if __name__ == "__main__":
    main()
