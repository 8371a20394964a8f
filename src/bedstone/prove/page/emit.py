"""Charts as HTML and SVG."""

from collections.abc import Iterable
from html import escape
from math import ceil, floor, log10

from bedstone.prove.page.facts import Chart, charts
from bedstone.spec.trace import Trace

COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#8e5ea2", "#b8860b", "#00798c", "#d1495b", "#5c6b73")

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 900, 340, 80, 90, 16
_LONGEST_LABEL = 18
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 64rem; padding: 0 1rem;
  color: #1d2733; background: #fff; }
h1 { overflow-wrap: anywhere; }
h2 { margin: 2.5rem 0 0; font-size: 1.15rem; overflow-wrap: anywhere; }
p.note { margin: 0 0 .5rem; color: #5a6774; }
svg { width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
.grid { stroke: #d8dee4; } .floor { stroke: #1d2733; stroke-width: 2; }
.reference { stroke: #8a94a0; stroke-dasharray: 4 3; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .8rem .15rem 0; text-align: left; border-bottom: 1px solid #e4e8ec; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 50%; margin-right: .4em; }
@media (prefers-color-scheme: dark) {
  body { color: #e3e8ed; background: #14191e; } .grid { stroke: #313a43; }
  .floor { stroke: #e3e8ed; } th, td { border-color: #313a43; } p.note { color: #9aa6b2; }
}
"""


def emit_page(traces: Iterable[Trace]) -> str:
    """The page of all Traces that were evaluated."""
    body = "\n".join(map(emit_chart, charts(traces))) or "<p>No Trace was evaluated.</p>"
    return emit_sheet("Traces", body)


def emit_sheet(title: str, body: str) -> str:
    """A whole page around its body, with the style of charts and tables."""
    heading = escape(title)
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{heading}</title>\n<style>{_STYLE}</style>\n<h1>{heading}</h1>\n"
        f"{body}\n</html>\n"
    )


def emit_chart(chart: Chart) -> str:
    """A heading, the drawing and its table."""
    note = f"{chart.hardware}. {chart.method or 'nothing passed'}."
    lines = []
    if chart.floor:
        lines.append("The solid line is the least time that moving the data takes.")
    if chart.reference:
        lines.append("The dashed line is the reference.")
    return (
        f"<h2>{escape(chart.definition)}</h2>\n"
        f'<p class="note">{escape(" ".join([note, *lines]))}</p>\n{_svg(chart)}\n{_table(chart)}'
    )


class _Scale:
    """Where milliseconds and Workloads lie in a drawing."""

    def __init__(self, chart: Chart) -> None:
        times = [p.milliseconds for p in chart.points if p.milliseconds is not None]
        times += [*chart.floor.values(), *chart.reference.values()]
        self.low = floor(log10(min(times))) if times else 0
        self.high = max(ceil(log10(max(times))), self.low + 1) if times else 1
        self._count = len(chart.workloads)

    def x(self, at: float) -> float:
        """The middle of the column of Workload number `at`."""
        return _LEFT + (at + 0.5) * (_WIDTH - _LEFT - 10) / max(self._count, 1)

    def y(self, milliseconds: float) -> float:
        """The height of a time; each power of ten is as tall."""
        share = (log10(milliseconds) - self.low) / (self.high - self.low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)


def _svg(chart: Chart) -> str:
    scale = _Scale(chart)
    parts = [*_grid(chart, scale), *_lines(chart, scale)]
    columns = {label: at for at, label in enumerate(chart.workloads)}
    for point in chart.points:
        if point.milliseconds is None:
            continue
        at = chart.solutions.index(point.solution)
        shift = (at - (len(chart.solutions) - 1) / 2) * 0.6 / max(len(chart.solutions), 1)
        x, y = scale.x(columns[point.workload] + shift), scale.y(point.milliseconds)
        title = escape(f"{point.solution}, {point.workload}: {point.milliseconds:.4g} ms")
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{_colour(at)}">'
            f"<title>{title}</title></circle>"
        )
    label = escape(f"Milliseconds by Workload of {chart.definition}")
    drawn = "".join(parts)
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">{drawn}</svg>'


def _grid(chart: Chart, scale: _Scale) -> list[str]:
    parts = []
    for power in range(scale.low, scale.high + 1):
        y = scale.y(10.0**power)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        text = f"{10.0**power:g} ms"
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    every = max(1, len(chart.workloads) // 24)
    for at, label in enumerate(chart.workloads):
        if at % every == 0:
            x, y = scale.x(at), _HEIGHT - _BOTTOM + 14
            turn = f'transform="rotate(-30 {x:.1f} {y})" text-anchor="end"'
            text = label if len(label) <= _LONGEST_LABEL else f"{label[:_LONGEST_LABEL]}…"
            whole = f"<title>{escape(label)}</title>"
            parts.append(f'<text x="{x:.1f}" y="{y}" {turn}>{escape(text)}{whole}</text>')
    return parts


def _lines(chart: Chart, scale: _Scale) -> list[str]:
    """A short line across each column at the least possible time and at the reference's."""
    half = (scale.x(1) - scale.x(0)) / 2 if len(chart.workloads) > 1 else 200
    parts = []
    for at, label in enumerate(chart.workloads):
        for kind, times in (("floor", chart.floor), ("reference", chart.reference)):
            if label in times:
                x, y = scale.x(at), scale.y(times[label])
                parts.append(
                    f'<line class="{kind}" x1="{x - half:.1f}" x2="{x + half:.1f}" '
                    f'y1="{y:.1f}" y2="{y:.1f}"><title>{kind}, {escape(label)}: '
                    f"{times[label]:.4g} ms</title></line>"
                )
    return parts


def _table(chart: Chart) -> str:
    names = "".join(
        f'<th><span class="key" style="background:{_colour(at)}"></span>{escape(name)}</th>'
        for at, name in enumerate(chart.solutions)
    )
    cells = {(p.workload, p.solution): p for p in chart.points}
    rows = []
    for label in chart.workloads:
        numbers = []
        for name in chart.solutions:
            point = cells.get((label, name))
            numbers.append(
                f"<td>{'' if point is None else _cell(point.milliseconds, point.status)}"
            )
        bounds = "".join(
            f"<td>{times[label]:.4g}" if label in times else "<td>"
            for times in (chart.reference, chart.floor)
        )
        rows.append(f"<tr><td>{escape(label)}{''.join(numbers)}{bounds}")
    header = f"<tr><th>sizes</th>{names}<th>reference</th><th>least</th>"
    return f"<table>{header}{''.join(rows)}</table>"


def _cell(milliseconds: float | None, status: str) -> str:
    return escape(status) if milliseconds is None else f"{milliseconds:.4g} ms"


def _colour(at: int) -> str:
    return COLOURS[at % len(COLOURS)]
