"""What a caller insists on: a target is written `HARDWARE/MODEL/QUANTIZATION`.

What is left out, or `auto`, is resolved.
"""

from dataclasses import dataclass

from bedstone.errors import CallerError

AUTO = "auto"
"""Stands for what is best on this machine, or for this checkpoint."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A model and a quantization the caller insists on."""

    model: str | None = None
    quantization: str | None = None


NO_PIN = Pin()


def parse_target(text: str) -> tuple[str, Pin]:
    """The hardware set of a target's text and what it pins; more than three parts are none."""
    parts = text.split("/")
    if len(parts) > 3 or not all(parts):
        raise CallerError(f"target `{text}`: expected HARDWARE, HARDWARE/MODEL or …/QUANTIZATION")
    hardware, *rest = parts
    pinned = [None if part == AUTO else part for part in (*rest, AUTO, AUTO)[:2]]
    return hardware, Pin(*pinned)
