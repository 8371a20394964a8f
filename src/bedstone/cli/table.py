"""Rows of text in columns, and sizes a person can read."""

from collections.abc import Iterable

_UNITS = ("byte", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def columns(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Each row as a line, its cells under those of the other rows."""
    listed = list(rows)
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in listed
    ]


def counted(count: int, noun: str) -> str:
    """`1 call`, `2 calls`, `2 launches`."""
    ending = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count} {noun}{ending}"


def size(count: int) -> str:
    """`count` bytes in the largest binary unit that leaves it above 1."""
    unit, value = 0, float(count)
    while value >= 1024 and unit + 1 < len(_UNITS):
        unit, value = unit + 1, value / 1024
    return counted(count, "byte") if unit == 0 else f"{value:.1f} {_UNITS[unit]}"
