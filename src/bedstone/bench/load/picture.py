"""How many requests had their first token, and their end, within which time: an SVG. Pure."""

from collections.abc import Iterator, Sequence
from html import escape

from bedstone.bench.load.answered import Answer

_WIDTH, _HEIGHT = 860, 360
_PANELS = (("first token", 70.0), ("seconds a further token", 490.0))
_PANEL, _TOP, _BOTTOM = 330.0, 60.0, 46.0
_COLOURS = ("#1f6f8b", "#c8553d", "#5b8c3e", "#7a4fa3")


def draw_waits(names: Sequence[str], runs: Sequence[Sequence[Answer]]) -> str:
    """The share of requests [0, 1] over seconds, a line a server."""
    first = [[a.first for a in run if a.fault is None and a.first is not None] for run in runs]
    each = [[a.each for a in run if a.fault is None and a.each is not None] for run in runs]
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    style = 'font-family="system-ui, sans-serif" font-size="12" fill="#222"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>']
    parts.append('<rect width="100%" height="100%" fill="#fff"/>')
    for at, name in enumerate(names):
        colour = _COLOURS[at % len(_COLOURS)]
        parts.append(f'<text x="{70 + 200 * at}" y="22" fill="{colour}">{escape(name)}</text>')
    for (title, left), values in zip(_PANELS, (first, each), strict=True):
        parts += _panel(title, left, values)
    return "\n".join([*parts, "</svg>", ""])


def _panel(title: str, left: float, lines: Sequence[Sequence[float]]) -> Iterator[str]:
    """One picture: its frame, its ends in words, a step line for each server."""
    bottom, height = _HEIGHT - _BOTTOM, _HEIGHT - _BOTTOM - _TOP
    longest = max((value for values in lines for value in values), default=0.0) or 1.0
    yield f'<text x="{left}" y="{_TOP - 14}">{escape(title)}</text>'
    for share in (0.0, 0.5, 0.9, 1.0):
        y = bottom - height * share
        yield f'<path d="M{left} {y:.1f}h{_PANEL}" stroke="#e4e4e4"/>'
        yield f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>'
    for part in (0.0, 0.5, 1.0):
        x = left + _PANEL * part
        yield f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{longest * part:.3g} s</text>'
    for at, values in enumerate(lines):
        points = [f"M{left} {bottom}"]
        for rank, value in enumerate(sorted(values), 1):
            points.append(f"H{left + _PANEL * value / longest:.1f}")
            points.append(f"V{bottom - height * rank / len(values):.1f}")
        colour = _COLOURS[at % len(_COLOURS)]
        yield f'<path d="{"".join(points)}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
