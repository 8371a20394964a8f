"""A package to time: opened, loaded and counted."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import cast, get_args

from bedstone.bench.counted import Planned
from bedstone.bench.drive import Driver
from bedstone.bench.machine import DeviceName
from bedstone.bench.record import RANDOM_WEIGHTS, Ran
from bedstone.build.lane import lane_of
from bedstone.build.request import Package, open_weights
from bedstone.checkpoint.drawn import DrawnCheckpoint, draw
from bedstone.errors import CallerError
from bedstone.lane.schedule import Numerics
from bedstone.runtime.load import load
from bedstone.spec.dtype import FORMATS
from bedstone.target.hardware import find_set, read_sets

_FILL_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How packages are loaded: the device, and the tokens and sequences there is room for.

    `checkpoint` is where their weights are now; None is where they were at the compile.
    """

    device: DeviceName
    tokens: int
    sequences: int
    cache: Path
    threads: int | None = None
    checkpoint: str | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """A package in memory. `draw_seconds` is how long making random weights took, if they are."""

    package: Package
    planned: Planned
    driver: Driver
    load_seconds: float
    draw_seconds: float | None

    @property
    def ran(self) -> Ran:
        """What a record says of it."""
        lock = self.package.lock
        return Ran(
            path=str(self.package.path),
            model=self.planned.shape.config.name,
            checkpoint=lock.checkpoint,
            target=lock.target,
            numerics=lock.numerics,
            context=lock.context,
            sequences=lock.sequences,
            load_seconds=self.load_seconds,
            weights=None if self.draw_seconds is None else RANDOM_WEIGHTS,
            draw_seconds=self.draw_seconds,
        )


def load_subject(package: Package, options: LoadOptions, held: ExitStack) -> Subject:
    """Load a package; `held` closes it.

    Raises `CallerError`: it was compiled in a numerics that is none.
    """
    opened = open_weights(package, options.checkpoint)
    held.callback(opened.close)
    lock = package.lock
    lane = lane_of(find_set(lock.target, read_sets()), _numerics(package))
    began = perf_counter()
    if isinstance(opened, DrawnCheckpoint):
        opened.drawn.draw()
    drawn = perf_counter()
    session = held.enter_context(
        load(
            package.path,
            device=options.device,
            tokens=options.tokens,
            sequences=options.sequences,
            threads=options.threads,
            cache=options.cache,
            checkpoint=opened,
        )
    )
    loaded = perf_counter()
    driver = Driver(session, lock, opened.config.vocab)
    driver.fill(draw(FORMATS[lane.kernels.cache], _FILL_BYTES))
    return Subject(
        package=package,
        planned=Planned(opened, lane, lock.context),
        driver=driver,
        load_seconds=loaded - drawn,
        draw_seconds=drawn - began if isinstance(opened, DrawnCheckpoint) else None,
    )


def _numerics(package: Package) -> Numerics:
    found = next((each for each in get_args(Numerics) if each == package.lock.numerics), None)
    if found is None:
        raise CallerError(f"`{package.path}` has numerics `{package.lock.numerics}`, which is none")
    return cast("Numerics", found)
