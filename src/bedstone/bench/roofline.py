"""The roofline of a run as an SVG: operations a second over operations a byte. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from bedstone.bench.record import Record, Result

_WIDTH, _HEIGHT = 860, 520
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 24, 56, 56
_COLOURS = ("#1f6f8b", "#c8553d")
_LABEL_ROWS = 13


@dataclass(frozen=True, slots=True)
class Axis:
    """Decades from 10^low to 10^high along `length` pixels from `start`."""

    low: int
    high: int
    start: float
    length: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, length: float) -> "Axis":
        """The decades that hold all values, two at least."""
        low, high = floor(log10(min(values))), ceil(log10(max(values)))
        return cls(low, max(high, low + 2), start, length)

    def at(self, value: float) -> float:
        """Where a value lies."""
        return self.start + self.length * (log10(value) - self.low) / (self.high - self.low)

    @property
    def decades(self) -> tuple[int, ...]:
        """The exponents with a line of their own."""
        return tuple(range(self.low, self.high + 1))


@dataclass(frozen=True, slots=True)
class Point:
    """A result where it lies: operations a byte, and a second."""

    intensity: float
    rate: float
    label: str
    package: int

    @classmethod
    def of(cls, result: Result) -> "Point":
        """The place of a result."""
        cost, taken = result.cost, result.seconds.median
        case = result.case
        label = f"b{case.batch} c{case.context}" if case.kind == "decode" else f"p{case.context}"
        share = f"{result.limit_seconds / taken:.0%}"
        intensity = cost.operations / cost.nbytes
        return cls(intensity, cost.operations / taken, f"{label} · {share}", result.package)


def draw_roofline(record: Record) -> str:
    """The picture: bandwidth and matrix rate as lines, a point a result with its share of them."""
    points = [Point.of(result) for result in record.results]
    machine = record.machine
    ends = _intensities(record, points)
    tops = [machine.bandwidth * end for end in ends]
    if machine.operations is not None:
        tops = [min(top, machine.operations) for top in tops]
    x = Axis.over(ends, _LEFT, _WIDTH - _LEFT - _RIGHT)
    rates = [*(point.rate for point in points), *tops]
    y = Axis.over(rates, _HEIGHT - _BOTTOM, _TOP + _BOTTOM - _HEIGHT)
    parts = [*_grid(x, y), *_roof(record, x, y), *_points(points, x, y), *_titles(record)]
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    style = 'font-family="system-ui, sans-serif" font-size="12" fill="#222"'
    background = '<rect width="100%" height="100%" fill="#fff"/>'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>'
    return "\n".join([opening, background, *parts, "</svg>", ""])


def _intensities(record: Record, points: Sequence[Point]) -> list[float]:
    """The operations a byte to show: those of the points, and the ridge where there is one."""
    found = [point.intensity for point in points]
    machine = record.machine
    if machine.operations is not None:
        ridge = machine.operations / machine.bandwidth
        found += [ridge / 10, ridge * 3]
    return found


def _grid(x: Axis, y: Axis) -> Iterator[str]:
    bottom, top = _HEIGHT - _BOTTOM, _TOP
    for decade in x.decades:
        at = x.at(10.0**decade)
        yield _line((at, bottom), (at, top), "#e4e4e4")
        yield _text(at, bottom + 18, f"{10.0**decade:g}", "middle")
    for decade in y.decades:
        at = y.at(10.0**decade)
        yield _line((_LEFT, at), (_WIDTH - _RIGHT, at), "#e4e4e4")
        yield _text(_LEFT - 8, at + 4, _scaled(10.0**decade), "end")


def _roof(record: Record, x: Axis, y: Axis) -> Iterator[str]:
    """The slope of the bandwidth up to the matrix rate, then that, within the grid."""
    machine = record.machine
    least, most = 10.0**x.low, 10.0**x.high
    floor_rate, top_rate = 10.0**y.low, 10.0**y.high
    ceiling = top_rate if machine.operations is None else min(top_rate, machine.operations)
    first = max(least, floor_rate / machine.bandwidth)
    ridge = min(most, ceiling / machine.bandwidth)
    slope = (x.at(first), y.at(machine.bandwidth * first))
    corner = (x.at(ridge), y.at(machine.bandwidth * ridge))
    yield _line(slope, corner, "#444", 2)
    if machine.operations is not None and ridge < most:
        yield _line(corner, (x.at(most), y.at(ceiling)), "#444", 2)


def _points(points: Sequence[Point], x: Axis, y: Axis) -> Iterator[str]:
    """Circles, and labels to their right that move down where one above is too near."""
    taken: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda each: -each.rate):
        left, top = x.at(point.intensity), y.at(point.rate)
        colour = _COLOURS[point.package % len(_COLOURS)]
        yield f'<circle cx="{left:.1f}" cy="{top:.1f}" r="4" fill="{colour}"/>'
        row = top + 4
        while any(abs(row - r) < _LABEL_ROWS and abs(left - c) < 120 for c, r in taken):
            row += 1
        taken.append((left, row))
        yield _text(left + 8, row, point.label, "start", colour)


def _titles(record: Record) -> Iterator[str]:
    machine = record.machine
    facts = f"memory {machine.bandwidth / 1e9:,.0f} GB/s"
    if machine.operations is not None:
        facts += f" · matrices {machine.operations / 1e12:,.0f} TFLOP/s"
    yield _text(_LEFT, 22, f"{record.device}: {facts}, measured in this run", "start")
    for at, ran in enumerate(record.packages):
        name = f"{ran.model} · {ran.checkpoint.rpartition('/')[2]} · {ran.target} {ran.numerics}"
        yield _text(_LEFT + 360 * at, 42, name, "start", _COLOURS[at % len(_COLOURS)])
    yield _text(_WIDTH / 2, _HEIGHT - 14, "operations a byte", "middle")
    yield _text(_LEFT - 8, _TOP - 14, "op/s", "end")


def _scaled(rate: float) -> str:
    for unit, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{rate / size:g} {unit}"
    return f"{rate:g}"


def _line(start: tuple[float, float], end: tuple[float, float], colour: str, width: int = 1) -> str:
    (x1, y1), (x2, y2) = start, end
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"/>'


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#222") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {place}>{escape(text)}</text>"
