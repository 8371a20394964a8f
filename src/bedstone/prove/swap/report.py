"""A proof told: one fact a line, the verdict last; and as a JSON document that keeps both. Pure."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bedstone.errors import CallerError
from bedstone.prove.plain import plain
from bedstone.prove.swap.diff import Span
from bedstone.prove.swap.measure import Distance, worst
from bedstone.prove.swap.perf import Pair, Perf
from bedstone.prove.swap.replay import SpanResult
from bedstone.prove.swap.swap import Proof
from bedstone.prove.swap.verdict import EXIT, Evidence, Word
from bedstone.prove.swap.workload import Turn

FORMAT = "bedstone-swap"
_FINDINGS = 8
_FEW_OPS = 4
"""Calls of a span that are told one by one."""


def lines(proof: Proof) -> list[str]:
    """Every fact, worst findings first among their kind, the verdict last."""
    verdict = proof.verdict
    return [
        *_diff_lines(proof),
        *(_run_lines(proof) if proof.turns and proof.crash is None else ()),
        *([f"crash: {proof.crash}"] if proof.crash else ()),
        *(_perf_lines(proof.perf) if proof.perf else ()),
        f"{verdict.word}: {verdict.rule}: {verdict.reason}",
    ]


def _diff_lines(proof: Proof) -> Iterator[str]:
    counts = Counter(change.change for change in proof.diff.ops)
    told = ", ".join(f"{count} {change}" for change, count in sorted(counts.items()))
    yield f"diff: ops {told or 'alike'}; {len(proof.diff.spans)} spans"
    yield from (f"diff: {what} differs" for what in proof.diff.apart)
    yield from (f"diff: state `{name}`: {how}" for name, how in proof.diff.resized.items())
    yield from (f"diff: op `{each.op}`: {each.change}" for each in proof.diff.ops)
    for span, count in _kinds(proof.diff.spans):
        yield f"diff: span {span}{_more(count)}: {_ops(span)}"
        yield from (f"diff: span {span}{_more(count)}: {why}" for why in span.mismatch)


def _kinds(spans: Iterable[Span]) -> Iterator[tuple[Span, int]]:
    """The first of each kind of span, and how many there are."""
    kinds: dict[tuple[object, ...], list[Span]] = {}
    for span in spans:
        kinds.setdefault((*_kind(span), span.mismatch), []).append(span)
    yield from ((alike[0], len(alike)) for alike in kinds.values())


def _more(count: int) -> str:
    return f" and {count - 1} alike" if count > 1 else ""


def _ops(span: Span) -> str:
    mine, theirs = (_spelled(ops) for ops in (span.a.ops, span.b.ops))
    return f"`{mine}`" if mine == theirs else f"`{mine}` -> `{theirs}`"


def _spelled(ops: tuple[str, ...]) -> str:
    """The ops of a stretch; of a long one the first and how many there are."""
    few = "+".join(ops[:_FEW_OPS]) or "nothing"
    return few if len(ops) <= _FEW_OPS else f"{few}+… ({len(ops)} calls)"


def _run_lines(proof: Proof) -> Iterator[str]:
    e = proof.evidence
    yield (
        f"record: {len(proof.turns)} calls, {proof.snapshots} spans kept in "
        f"{proof.kept_bytes / 2**20:.1f} MiB"
    )
    for result in sorted(filter(_speaks, proof.results), key=_badness, reverse=True)[:_FINDINGS]:
        yield f"replay: {_finding(result, proof.turns)}"
    compared = {_kind(result.span) for result in proof.results}
    for span, count in _kinds(proof.diff.spans):
        if _kind(span) not in compared:
            yield f"unreplayed: {span}{_more(count)}: {_ops(span)}"
    yield f"spans: {len(proof.results)} replayed, {e.unreplayed} not; {_told(e.spans.numbers)}"
    yield from _depth_lines(proof)
    yield f"spans: {e.spans.outside} bytes written outside"
    yield f"spans: {e.spans.exact.values} of {e.spans.exact.elements} integers differ"
    yield (
        f"logits: {e.logits.rows} rows, {e.logits.differing} differ, KL {e.logits.kl:.3g}, "
        f"{e.logits.flips} flips of margin {e.logits.margin:.3g} at most"
    )
    yield (
        f"logits: KL {e.logits.quantile(0.5):.3g} in half of the rows, "
        f"{e.logits.quantile(0.9):.3g} in nine of ten; {e.logits.over} rows over their limit"
    )
    yield from _noise_lines(e)


def _depth_lines(proof: Proof) -> Iterator[str]:
    """Where spans are many calls long, how far B is from A after layers that leave a state."""
    found: dict[str, list[Distance]] = {}
    for result in proof.results:
        if len(result.span.a.ops) > _FEW_OPS:
            for name, each in result.states:
                found.setdefault(name, []).append(each)
    ordered = sorted(found, key=_numbered)
    step = max(1, -(-len(ordered) // _FINDINGS))
    for name in dict.fromkeys((*ordered[::step], *ordered[-1:])):
        yield f"depth: state `{name}`: {_told(worst(found[name]))}"


def _numbered(name: str) -> tuple[tuple[int, str], ...]:
    """Names in the order of the numbers in them: a layer's number is part of its state's."""
    return tuple((int(part or 0), text) for text, part in re.findall(r"(\D*)(\d*)", name))


def _noise_lines(e: Evidence) -> Iterator[str]:
    if e.noise.numbers.elements:
        yield f"noise: A's spans again: {_told(e.noise.numbers)}"
    yield (
        f"noise: A's logits again: {e.floor.differing} rows differ, KL {e.floor.kl:.3g}, "
        f"{e.floor.flips} flips"
    )
    yield (
        f"sway: A with other last bits: KL {e.sway.kl:.3g}, {e.sway.quantile(0.9):.3g} in nine of "
        f"ten rows, {e.sway.flips} flips of margin {e.sway.margin:.3g} at most; {e.open} rows open"
    )
    for name, stale in (("A", e.floor_stale), ("B", e.stale)):
        yield f"poison: {stale} rows of {name} depend on unused memory"
    for name, strange in (("A", e.floor_strange), ("B", e.strange)):
        yield f"domain: {strange} values of {name}'s outputs lie outside"
    yield f"repeat: {e.restless} rows of B differ from run to run"
    if e.weights:
        yield "weights: B wrote to its weights"
    yield from (f"undriven: program `{name}`" for name in e.undriven)


def _perf_lines(perf: Perf) -> Iterator[str]:
    yield f"perf: memory reads {perf.bandwidth / 1e9:.3g} GB/s"
    for step in perf.steps:
        name = f"{step.program}, {step.rows} rows at {step.longest}"
        told, least = _seconds(step.seconds), _least(step.nbytes, perf.bandwidth)
        yield f"perf: {name}: {told}, derived {step.derived * 1e3:.3g} ms{least}"
        for span in step.spans:
            told, least = _seconds(span.seconds), _least(span.nbytes, perf.bandwidth)
            yield f"perf: {name}: {span.count} x {_ops(span.span)}: {told}{least}"


def _seconds(pair: Pair) -> str:
    ratio = f" (x{pair.b / pair.a:.3g})" if pair.a else ""
    return f"A {pair.a * 1e3:.3g} ms, B {pair.b * 1e3:.3g} ms{ratio}"


def _least(nbytes: int | None, bandwidth: float) -> str:
    if nbytes is None:
        return ""
    return f"; {nbytes / 1e6:.3g} MB, {nbytes / bandwidth * 1e3:.3g} ms at least"


def _kind(span: Span) -> tuple[object, ...]:
    return span.program, span.a.ops, span.b.ops


def _speaks(result: SpanResult) -> bool:
    return bool(result.numbers.bits or result.exact.bits or result.outside)


def _badness(result: SpanResult) -> tuple[int, int, float, float]:
    return (result.outside, result.numbers.broken, result.numbers.relative, result.numbers.peak)


def _finding(result: SpanResult, turns: Sequence[Turn]) -> str:
    where = "while loading"
    if result.turn is not None:
        turn = turns[result.turn]
        where = f"{turn.rows} rows up to position {turn.longest - 1}"
    strays = f"; outside: {', '.join(result.strays)}" if result.strays else ""
    return (
        f"{result.span}, {where}, {_ops(result.span)}: "
        f"{_told(result.numbers)}, {result.exact.values} integers differ, "
        f"{result.outside} bytes outside{strays}"
    )


def _told(d: Distance) -> str:
    return (
        f"{d.bits} of {d.elements} numbers differ in bits, {d.values} in value, {d.broken} not "
        f"finite, error {d.relative:.3g} rms, {d.peak:.3g} peak"
    )


def document(proof: Proof, names: Mapping[str, str]) -> dict[str, Any]:
    """The JSON document; `names` says what A and B were."""
    return {
        "format": FORMAT,
        **names,
        "verdict": asdict(proof.verdict),
        "ops": [asdict(change) for change in proof.diff.ops],
        "apart": list(proof.diff.apart),
        "resized": dict(proof.diff.resized),
        "evidence": plain(asdict(proof.evidence)),
        "spans": [plain(_span(result)) for result in proof.results],
        "perf": None if proof.perf is None else _timed(proof.perf),
        "crash": None if proof.crash is None else asdict(proof.crash),
        "lines": lines(proof),
    }


def _timed(perf: Perf) -> dict[str, Any]:
    return {
        "bandwidth": perf.bandwidth,
        "steps": [
            {
                **_times(step.seconds, step.nbytes),
                "program": step.program,
                "rows": step.rows,
                "longest": step.longest,
                "derived": step.derived,
                "spans": [
                    {
                        **_times(span.seconds, span.nbytes),
                        "a_ops": list(span.span.a.ops),
                        "b_ops": list(span.span.b.ops),
                        "count": span.count,
                    }
                    for span in step.spans
                ],
            }
            for step in perf.steps
        ],
    }


def _times(seconds: Pair, nbytes: int | None) -> dict[str, Any]:
    return {"a": seconds.a, "b": seconds.b, "bytes": nbytes}


def _span(result: SpanResult) -> dict[str, Any]:
    return {
        "span": str(result.span),
        "a": list(result.span.a.ops),
        "b": list(result.span.b.ops),
        "call": result.turn,
        "numbers": asdict(result.numbers),
        "exact": asdict(result.exact),
        "outside": result.outside,
        "strays": list(result.strays),
    }


def read_document(text: bytes, where: str) -> tuple[list[str], Word]:
    """The lines of a kept document and its verdict.

    Raises `CallerError`: it is none.
    """
    try:
        found = json.loads(text)
        told, word = found["lines"], found["verdict"]["word"]
        good = found["format"] == FORMAT and word in EXIT and all(map(_printable, told))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CallerError(f"`{where}` is no archive of `prove swap`: {error}") from error
    if not good:
        raise CallerError(f"`{where}` is no archive of `prove swap`: expected `{FORMAT}`")
    return list(told), word


def _printable(line: object) -> bool:
    return isinstance(line, str) and line.isprintable()
