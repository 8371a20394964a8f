"""What a machine can do, as it was measured."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes a second of a copy, read and written (of a CPU: read), and operations a second.

    `operations` None where they are not measured; `note` says why.
    """

    bandwidth: float
    operations: float | None = None
    note: str | None = None
