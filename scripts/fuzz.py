"""Compares our verdicts with the reference reader's on many changed manifests.

    python scripts/fuzz.py --count 20000 [--start 0] [--found found.jsonl]

Prints how often and how the two differ; exits 1 when they differ where they should not. What is
found is written to `--found`, as cases to be named and kept in tests/conformance/found.jsonl.
"""

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The tests' package `fuzz` is meant, not this file, whose folder Python puts first.
sys.path[:1] = [str(ROOT / "src"), str(ROOT / "tests")]

from fuzz.campaign import Trial, trials  # noqa: E402


def main() -> int:
    """Runs the trials and prints the counts."""
    options = _options()
    counts: Counter[str] = Counter()
    found: list[Trial] = []
    for trial in trials(range(options.start, options.start + options.count)):
        counts["accepted by the reference" if trial.accepted else "refused by the reference"] += 1
        if trial.differs is not None:
            why = f"allowed: {trial.differs.allowed}" if trial.differs.allowed else "FOUND"
            counts[f"{why} ({trial.differs.kind})"] += 1
        if trial.is_found:
            found.append(trial)
    for what, count in sorted(counts.items()):
        print(f"{count:8d}  {what}")
    if options.found:
        options.found.write_text("".join(map(_case, found)), encoding="utf-8")
    return 1 if found else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=300, help="how many manifests to try")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--found", type=Path, help="where to write the differences found")
    return parser.parse_args()


def _case(trial: Trial) -> str:
    record = {
        "name": f"seed-{trial.seed}",
        "allowed": None,
        "accepted": trial.accepted,
        "differs": trial.differs and asdict(trial.differs),
        "messages": trial.messages,
        "text": trial.text,
    }
    return json.dumps(record) + "\n"


if __name__ == "__main__":
    sys.exit(main())
