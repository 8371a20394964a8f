"""A side driven in a process of its own: where it was when a kernel of it crashed."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from bedstone.errors import DeviceError
from bedstone.prove.apart import Death, Mark, run_apart
from bedstone.runtime.session import Session
from bedstone.runtime.stepper import Stepper
from bedstone.spec.manifest import Manifest

ResultT = TypeVar("ResultT")
Watch = Callable[[Session], Stepper]
"""A session's stepper whose steps are marked."""


@dataclass(frozen=True, slots=True)
class Crash:
    """How a side ended, and in which calls [start, stop) of a program; `ops` are theirs.

    `stalled` says that it did not end in time. A side that died while loading has no program: it
    was in one of the ops that changed and that loading runs, if there are any.
    """

    how: str
    stalled: bool = False
    program: str = ""
    start: int = 0
    stop: int = 0
    ops: tuple[str, ...] = ()

    def __str__(self) -> str:
        named = ", ".join(f"`{op}`" for op in self.ops)
        if not self.program:
            return f"{self.how} while loading" + (f", which runs {named} anew" if named else "")
        return (
            f"{self.how} in op {named}, program `{self.program}` calls [{self.start}, {self.stop})"
        )


class Watched(Stepper):
    """A stepper that marks what it runs; a `fine` one runs each call alone."""

    def __init__(self, session: Session, mark: Mark, *, fine: bool) -> None:
        super().__init__(session)
        self._mark, self._fine = mark, fine

    def run(
        self, program: str, start: int, stop: int, given: Mapping[str, int], *, times: int = 1
    ) -> None:
        """Run calls [start, stop) of a program under the vars of a whole run, so many times."""
        step = 1 if self._fine else max(1, stop - start)
        for at in range(start, stop, step):
            self._mark.set(json.dumps([program, at, min(at + step, stop)]))
            super().run(program, at, min(at + step, stop), given, times=times)


def watched(
    work: Callable[[Watch], ResultT], manifest: Manifest, seconds: float
) -> ResultT | Crash:
    """Do work apart; where it dies, do it again call by call to find the call.

    Args:
        work: Is given what makes the stepper of the session it loads.
        manifest: Of the side that is driven.
        seconds: The most each attempt may take.

    Returns:
        The result, or where and how the side ended.
    """

    def attempt(*, fine: bool) -> ResultT | Death:
        # a GPU's crash is an error that its driver reports
        return run_apart(
            lambda mark: work(partial(Watched, mark=mark, fine=fine)), seconds, (DeviceError,)
        )

    found = attempt(fine=False)
    if not isinstance(found, Death):
        return found
    again = attempt(fine=True)
    return _crash(again if isinstance(again, Death) and again.mark else found, manifest)


def _crash(death: Death, manifest: Manifest) -> Crash:
    if not death.mark:
        return Crash(death.how, death.stalled)
    program, start, stop = json.loads(death.mark)
    ops = dict.fromkeys(call.op for call in manifest.programs[program].calls[start:stop])
    return Crash(death.how, death.stalled, program, start, stop, tuple(ops))
