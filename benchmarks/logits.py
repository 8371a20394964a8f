"""How far logits lie apart: Bedstone's two numerics and llama.cpp, over the tokens of a text.

    python benchmarks/logits.py MODEL.gguf TEXT.txt [--tokens 256] [--json]

Every engine is fed the same ids one by one. `precise` multiplies the dequantized weights in
float32, so it stands for the model itself; `quantized` and llama.cpp round activations to 8 bits.
For each pair: the Kullback-Leibler divergence of the second from the first in nats, and how often
the likeliest token is the same.
"""

import argparse
import json
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sides import OURS, PEER, THEIRS, Side, commands, compiled, machine, our_command, parsed, parser

from bedstone.checkpoint.reference import open_checkpoint

PRECISE, QUANTIZED = f"{OURS} precise", f"{OURS} quantized"
PAIRS = ((PRECISE, QUANTIZED), (PRECISE, THEIRS), (THEIRS, QUANTIZED))

Logits = NDArray[np.float64]


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Feed the text to all; the record of what they made of it."""
    ids = open_checkpoint(str(options.model)).tokenizer.encode(
        options.text.read_text(), special=False
    )
    ids = ids[: options.tokens]
    room = len(ids) + 64
    starts = {
        PRECISE: our_command(options, room, compiled(options, "precise")[0]),
        QUANTIZED: our_command(options, room, compiled(options)[0]),
        THEIRS: commands(options, room)[THEIRS],
    }
    rows = {name: logits(command, ids) for name, command in starts.items()}
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "model": options.model.name,
        "text": options.text.name,
        "tokens": len(ids),
        "peer": PEER,
        "pairs": {f"{a}, {b}": distance(rows[a], rows[b]) for a, b in PAIRS},
    }


def logits(command: list[str], ids: list[int]) -> Logits:
    """The logits after each id [ids, vocab]."""
    side = Side(command)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "logits.npy"
        side.ask("logits", str(path), *ids)
        side.close()
        return np.load(path).astype(np.float64)


def distance(a: Logits, b: Logits) -> dict[str, float]:
    """Over rows, KL(a || b) and the share of equal likeliest tokens."""
    p, q = log_softmax(a), log_softmax(b)
    kl = (np.exp(p) * (p - q)).sum(axis=1)
    return {
        "kl_mean": float(kl.mean()),
        "kl_median": float(np.median(kl)),
        "kl_most": float(kl.max()),
        "same_token": float((a.argmax(axis=1) == b.argmax(axis=1)).mean()),
    }


def log_softmax(logits: Logits) -> Logits:
    """Log probabilities of each row."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    found: Logits = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return found


def lines(record: Mapping[str, Any]) -> list[str]:
    """The record for a person."""
    out = [f"{'':34}{'KL mean':>10}{'median':>10}{'most':>10}{'same token':>12}"]
    for pair, found in record["pairs"].items():
        numbers = "".join(f"{found[f'kl_{what}']:10.2g}" for what in ("mean", "median", "most"))
        out.append(f"{pair:34}{numbers}{found['same_token']:12.1%}")
    return out


def main() -> None:
    """Read the command line, measure, print."""
    options = parser(__doc__)
    options.add_argument("text", type=Path)
    options.add_argument("--tokens", type=int, default=256)
    given = parsed(options)
    record = measure(given)
    print(json.dumps(record, indent=1) if given.json else "\n".join(lines(record)))


if __name__ == "__main__":
    main()
