"""A proof as one page of HTML: the verdict, where B is off, how long both take, and every fact.

Drawn with the code of the page of Traces; it needs no script and nothing from elsewhere.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from math import floor, log10

from bedstone.prove.page.emit import COLOURS, emit_chart, emit_sheet
from bedstone.prove.page.facts import Chart, Point
from bedstone.prove.swap.perf import Perf, SpanTime, StepTime
from bedstone.prove.swap.replay import SpanResult
from bedstone.prove.swap.swap import Proof
from bedstone.prove.swap.verdict import Bounds, Word
from bedstone.prove.swap.workload import Turn

_WORDS: dict[Word, str] = {"PASS": "#3a7d44", "FAIL": "#c8553d", "INCONCLUSIVE": "#b8860b"}
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 900, 320, 80, 44, 16
_LEAST = 1e-9
"""Errors below this, none among them, are drawn at the bottom."""

_MOST_KINDS = 8


def emit_page(proof: Proof, bounds: Bounds, told: Sequence[str], sides: tuple[str, str]) -> str:
    """The page of a proof; `told` are its lines, the verdict last, and `sides` A and B by name."""
    verdict = proof.verdict
    colour = _WORDS[verdict.word]
    parts = [
        f'<p><strong style="color:{colour}">{verdict.word}</strong>: {escape(verdict.rule)}: '
        f"{escape(verdict.reason)}</p>",
        f'<p class="note">A is {escape(sides[0])}<br>B is {escape(sides[1])}</p>',
        *([_errors(proof, bounds)] if proof.results else ()),
        *(_times(proof.perf) if proof.perf else ()),
        *_facts(told[:-1]),
    ]
    return emit_sheet("May B take A's place?", "\n".join(parts))


def _errors(proof: Proof, bounds: Bounds) -> str:
    """A point for each span that was replayed: its length, and how far off it is."""
    ops = _worst_first(proof.results)
    scale = _Scale(proof, bounds)
    drawn = "".join([*_grid(scale, bounds), *_points(proof, list(ops), scale)])
    key = "".join(
        f'<tr><td><span class="key" style="background:{_colour(at)}"></span>{escape(name)}'
        f"<td>{len(errors)}<td>{_told(max(errors))}"
        for at, (name, errors) in enumerate(ops.items())
    )
    label = "Error of each span by the position it reaches"
    return (
        "<h2>Spans</h2>\n"
        '<p class="note">Error of what B leaves, over the root mean square of what A does, by the '
        "length that a sequence has reached. The solid line is the bound of drift; points on the "
        "lowest line are the same in value.</p>\n"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">{drawn}</svg>\n'
        f"<table><tr><th>Op<th>Spans<th>Worst error{key}</table>"
    )


def _worst_first(results: Sequence[SpanResult]) -> dict[str, list[float]]:
    """The errors of the spans of each op, or row of ops."""
    errors: dict[str, list[float]] = {}
    for result in results:
        errors.setdefault("+".join(result.span.a.ops), []).append(_error(result))
    return dict(sorted(errors.items(), key=lambda each: -max(each[1])))


def _told(error: float) -> str:
    return f"{error:.3g}" if error else "same"


class _Scale:
    """Where lengths and errors lie; doubling a length is as wide anywhere, so is ten times it."""

    def __init__(self, proof: Proof, bounds: Bounds) -> None:
        self.longest = max(turn.longest for turn in proof.turns)
        self.low = floor(log10(_LEAST))
        top = max([bounds.drift, *(_error(result) for result in proof.results)])
        self.high = max(floor(log10(top)) + 1, self.low + 1)

    def x(self, length: int) -> float:
        """The place of a length of at least 1."""
        share = log10(length) / max(log10(self.longest), 1.0)
        return _LEFT + 10 + share * (_WIDTH - _LEFT - 30)

    def y(self, error: float) -> float:
        """The height of an error."""
        share = (log10(max(error, _LEAST)) - self.low) / (self.high - self.low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)


def _grid(scale: _Scale, bounds: Bounds) -> Iterator[str]:
    for power in range(scale.low, scale.high + 1):
        y = scale.y(10.0**power)
        yield f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        text = "same" if power == scale.low else f"{10.0**power:g}"
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
    length = 1
    while length <= scale.longest:
        x = scale.x(length)
        yield f'<text x="{x:.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{length}</text>'
        length *= 4
    y = scale.y(bounds.drift)
    yield f'<line class="floor" x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _points(proof: Proof, ops: list[str], scale: _Scale) -> Iterator[str]:
    for result in proof.results:
        turn = None if result.turn is None else proof.turns[result.turn]
        at = ops.index("+".join(result.span.a.ops))
        x, y = scale.x(turn.longest if turn else 1), scale.y(_error(result))
        title = escape(f"{result.span}, {_where(turn)}: {_error(result):.3g}")
        yield (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{_colour(at)}">'
            f"<title>{title}</title></circle>"
        )


def _where(turn: Turn | None) -> str:
    return f"{turn.rows} rows up to length {turn.longest}" if turn else "while loading"


def _error(result: SpanResult) -> float:
    """Relative; whole where B has no number, or another integer, or wrote where it should not."""
    wrong = result.numbers.broken or result.exact.values or result.outside
    return max(result.numbers.relative, 1.0 if wrong else 0.0)


def _colour(at: int) -> str:
    """One for each of the worst ops; the others share the last."""
    return COLOURS[min(at, len(COLOURS) - 1)]


def _times(perf: Perf) -> Iterator[str]:
    for step in perf.steps:
        yield emit_chart(_chart(step, perf.bandwidth))


def _chart(step: StepTime, bandwidth: float) -> Chart:
    """The whole step, then each kind of span, the longest first."""
    spans = sorted(step.spans, key=lambda each: -each.seconds.a)[:_MOST_KINDS]
    rows = [("whole step", step.seconds, step.nbytes)]
    rows += [
        (f"{at}: {each.count} x {_ops(each)}", each.seconds, each.nbytes)
        for at, each in enumerate(spans, 1)
    ]
    points = [
        Point(side, label, seconds * 1e3 or None, "nothing runs")
        for label, pair, _ in rows
        for side, seconds in (("A", pair.a), ("B", pair.b))
    ]
    return Chart(
        definition=f"{step.program}, {step.rows} rows up to length {step.longest}",
        hardware="This machine",
        workloads=tuple(label for label, _, _ in rows),
        solutions=("A", "B"),
        points=tuple(points),
        floor={label: n / bandwidth * 1e3 for label, _, n in rows if n},
        reference={"whole step": step.derived * 1e3} if step.derived > 0 else {},
        method="wall clock, A and B in turn; the reference is A with B's spans",
    )


def _ops(span: SpanTime) -> str:
    return "+".join(span.span.a.ops or span.span.b.ops)


def _facts(told: Iterable[str]) -> Iterator[str]:
    """What the command prints, but for the verdict."""
    yield "<h2>Facts</h2>\n<table>"
    for line in told:
        key, _, rest = line.partition(": ")
        yield f"<tr><td>{escape(key)}<td>{escape(rest)}"
    yield "</table>"
