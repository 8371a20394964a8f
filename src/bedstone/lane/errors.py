"""What can go wrong when a step is lowered. None is raised after a schedule exists."""

from collections.abc import Iterable

from bedstone.errors import BedstoneError, CallerError, TargetError


class UnknownRuleError(CallerError):
    """A name to hold back is no step of the lane."""

    def __init__(self, names: Iterable[str], known: Iterable[str]) -> None:
        unknown = ", ".join(f"`{name}`" for name in names)
        super().__init__(f"cannot hold back {unknown}: the lane's steps are {', '.join(known)}")


class ChunkLengthError(CallerError):
    """A chunk has more rows than a lane compiles."""

    def __init__(self, rows: int, most: int) -> None:
        super().__init__(f"a chunk of {rows} rows is too long: a lane compiles up to {most}")


class OpError(CallerError):
    """An op of the graph cannot be lowered, whatever the target."""

    def __init__(self, op: int, name: str, why: str) -> None:
        super().__init__(f"op {op} (`{name}`): {why}")
        self.op = op
        self.name = name


class NoLaunchError(TargetError):
    """The lane has no launch for an op that must run."""

    def __init__(self, op: int, name: str, why: str) -> None:
        super().__init__(f"op {op} (`{name}`) has no launch: {why}")
        self.op = op
        self.name = name


class ScheduleError(BedstoneError):
    """A schedule does not compute its graph: a defect of the lane, found before anything runs."""

    def __init__(self, model: str, faults: Iterable[str]) -> None:
        lines = "\n".join(f"  {fault}" for fault in faults)
        super().__init__(f"the schedule of `{model}` does not compute its graph:\n{lines}")
