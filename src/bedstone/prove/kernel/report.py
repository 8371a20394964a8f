"""Proofs of ops told: a fact a line and the verdict last, a table of many, JSON of either. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from bedstone.prove.kernel.case import Found, Judged
from bedstone.prove.kernel.prove import OpProof
from bedstone.prove.plain import plain
from bedstone.prove.swap.verdict import Word


def worst_of(proof: OpProof) -> tuple[Judged, Found] | None:
    """The output farthest off, those that do not fit first; None where nothing was judged."""
    every = [(call, found) for call in proof.calls for found in call.outputs]
    return max(every, key=lambda pair: _badness(pair[1]), default=None)


def _badness(found: Found) -> tuple[bool, float, float]:
    return (not found.metrics.fits, found.metrics.spread, found.metrics.max_absolute_error)


def overall(proofs: Sequence[OpProof]) -> Word:
    """The verdict on all: any that fails, else any that nothing is known of."""
    words = {proof.word for proof in proofs}
    if "FAIL" in words:
        return "FAIL"
    return "PASS" if words == {"PASS"} else "INCONCLUSIVE"


def lines(proof: OpProof) -> list[str]:
    """Every call and output of one op, the verdict last."""
    return [
        f"op: `{proof.op}`",
        *(line for call in proof.calls for line in _call_lines(call)),
        *(f"note: {note}" for note in proof.notes),
        verdict_line(proof),
    ]


def _call_lines(call: Judged) -> Iterator[str]:
    for found in call.outputs:
        yield f"{call.where}: `{found.output}` {_told(found)}"
    yield from (f"{call.where}: {fault}" for fault in call.faults)


def _told(found: Found) -> str:
    m = found.metrics
    reasons = f"; {', '.join(m.reasons)}" if m.reasons else ""
    return (
        f"{'fits' if m.fits else 'is wrong'}, largest error {m.max_absolute_error:.3g}, worst at "
        f"{list(m.worst)}: expected {m.expected:.6g}, found {m.found:.6g}{reasons}"
    )


def verdict_line(proof: OpProof) -> str:
    """The verdict, and the worst error with its index."""
    worst = worst_of(proof)
    if worst is None:
        return f"{proof.word}: {proof.reason}"
    call, found = worst
    return f"{proof.word}: {proof.reason}; worst: {call.where}: `{found.output}` {_told(found)}"


def table(proofs: Sequence[OpProof]) -> list[str]:
    """A row for each op with its worst error, and the verdict on all last."""
    rows = [("verdict", "op", "calls", "largest error", "output", "at", "note"), *map(_row, proofs)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    told = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    counts = ", ".join(
        f"{sum(proof.word == word for proof in proofs)} {word}"
        for word in ("PASS", "FAIL", "INCONCLUSIVE")
    )
    return [*told, f"{overall(proofs)}: {len(proofs)} ops: {counts}"]


def _row(proof: OpProof) -> tuple[str, ...]:
    worst = worst_of(proof)
    faults = [fault for call in proof.calls for fault in call.faults]
    note = "; ".join([*faults, *([] if proof.word == "PASS" else [proof.reason])])
    if worst is None:
        return (proof.word, proof.op, str(len(proof.calls)), "-", "-", "-", note)
    metrics = worst[1].metrics
    at = ",".join(map(str, metrics.worst)) or "-"
    error = f"{metrics.max_absolute_error:.3g}"
    return (proof.word, proof.op, str(len(proof.calls)), error, worst[1].output, at, note)


def document(proofs: Sequence[OpProof]) -> dict[str, Any]:
    """The JSON document of one op or of many."""
    return {
        "format": "bedstone-kernel",
        "verdict": overall(proofs),
        "ops": [{**plain(asdict(proof)), "line": verdict_line(proof)} for proof in proofs],
    }
