"""What a lane answers: whether its device has a launch."""

from typing import Protocol

from bedstone.lane.launch import Launch


class Shim(Protocol):
    """The lane's kernels, asked and never run. Pure and total: the same launch, the same answer."""

    def lacks(self, launch: Launch) -> str | None:
        """Why the lane has no such launch; None where it has."""
        ...
