"""Judges swaps of kernels with one random edit, and looks for a PASS that should be none.

    python scripts/mutate_swap.py [--count 200] [--seed 0] [--json results.json]

Edits are of constants, bounds, signs and indices, in the sources of tiny packages' CPU kernels;
those that do not compile, or to the same bytes, do not count. A mutant that passes is run on a
workload far denser than the judge's: there it must be the same to the bit, or differ as roundings
do. Prints a line for each; exits 1 where a PASS is false, or a report names no op of the module.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT / "src"), str(ROOT / "tests")]

from letters import write_tokenizer  # noqa: E402
from packages import compiled  # noqa: E402
from swap_mutants import Result, Subject, drawn, one, tried  # noqa: E402
from tiny_models import write_tiny  # noqa: E402

PACKAGES = (
    ("llama", "precise"),
    ("llama", "quantized"),
    ("gemma3", "precise"),
    ("qwen3-moe", "quantized"),
    ("qwen3.5", "precise"),
    ("deepseek-v3", "precise"),
)
CONTEXT = 4200
NEEDS_NO_NAME = {"stalled", "undriven"}
"""Rules that speak of whole runs."""


def main() -> int:
    """Tries mutants and prints what became of each."""
    options = _options()
    rng = np.random.default_rng(options.seed)
    found: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        subjects = [_subject(Path(folder), *each) for each in PACKAGES]
        while len(found) < options.count:
            subject = one(rng, subjects)
            out = Path(folder) / "mutant"
            result = tried(subject, *drawn(subject, rng), out)
            shutil.rmtree(out, ignore_errors=True)
            shutil.rmtree(out.with_suffix(".sources"))
            if result.kind != "no edit":
                found.append(result)
                print(len(found), _told(result), flush=True)
    counts = Counter((r.kind, r.word, r.rule) for r in found)
    for (kind, word, rule), count in sorted(counts.items()):
        print(f"{count:5d}  {kind}: {word}, {rule}")
    if options.json:
        options.json.write_text(json.dumps([asdict(r) for r in found], indent=1) + "\n")
    return 1 if any(map(_wrong, found)) else 0


def _wrong(result: Result) -> bool:
    unnamed = result.kind == "caught" and not result.named and result.rule not in NEEDS_NO_NAME
    return result.kind == "false PASS" or unnamed


def _told(r: Result) -> str:
    wrong = "  <-- WRONG" if _wrong(r) else ""
    edit = f"{r.mutation.source}:{r.mutation.line} {r.mutation.new.strip()}"
    return f"{r.kind}: {r.word} {r.rule}: {r.subject} {r.module}: {edit} {r.why}{wrong}"


def _subject(folder: Path, family: str, numerics: str) -> Subject:
    checkpoint = folder / family
    if not checkpoint.exists():
        model = write_tiny(family, checkpoint)
        model.config.max_position_embeddings = CONTEXT
        model.save_pretrained(checkpoint)
        write_tokenizer(checkpoint)
    out = folder / f"{family}-{numerics}"
    options = {"numerics": numerics, "sequences": 3}
    package = compiled(str(checkpoint), out, folder / "cache", **options)
    return Subject(out.name, package.path, folder / "cache")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=200, help="how many mutants to judge")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write every result")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
