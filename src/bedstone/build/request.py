"""What a compile is asked for, and the name its package has in the cache.

A second run only finds its package, so this module imports nothing of the planner.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bedstone.build.identity import package_key, sources_digest
from bedstone.checkpoint.checkpoint import Checkpoint
from bedstone.checkpoint.drawn import PREFIX as DRAWN_PREFIX
from bedstone.checkpoint.drawn import open_drawn
from bedstone.checkpoint.reference import PACKAGE_PREFIX, open_checkpoint, require_identity
from bedstone.checkpoint.shapes import Shape
from bedstone.errors import CallerError, WeightError
from bedstone.graph.step import FormName
from bedstone.spec.file import read_bounded
from bedstone.spec.package import LOCK, Lock, parse_lock
from bedstone.target.cpu import choose
from bedstone.target.features import read_features
from bedstone.target.hardware import HardwareSet, read_sets
from bedstone.target.pin import parse_target

if TYPE_CHECKING:
    from bedstone.build.picks import Picks

MOST_CONTEXT = 32768
"""Positions a compile serves unless asked for more: its rope tables take memory in proportion."""

MOST_SEQUENCES = 64
"""Sequences that one step decodes: a plan grows with each, and a kernel takes a row of each."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller chooses: how products are computed, and how many positions are served.

    `context` None takes the checkpoint's own, at most `MOST_CONTEXT`; `held` names rules of the
    lane to hold back. More than one of `sequences` adds a step that decodes up to so many at once.
    With a `sampler` steps draw their tokens as each sequence's settings say.
    """

    numerics: Literal["precise", "quantized"] = "quantized"
    context: int | None = None
    held: tuple[str, ...] = ()
    sequences: int = 1
    sampler: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A compile to be made: the checkpoint, what for (`auto` is this machine), and how.

    `picks` takes kernels from other sets than the target's own.
    """

    checkpoint: Checkpoint
    options: Options
    cache: Path
    target: str = "auto"
    picks: "Picks | None" = None

    @property
    def reference(self) -> str:
        """The checkpoint's reference as it will still mean the same from another directory.

        Raises `CallerError`: it is a path that is no UTF-8, which no lock can spell.
        """
        if self.checkpoint.reference.startswith((PACKAGE_PREFIX, DRAWN_PREFIX)):
            return self.checkpoint.reference
        path = str(self.checkpoint.path.resolve())
        try:
            path.encode()
        except UnicodeEncodeError as error:
            raise CallerError(
                f"checkpoint `{path}`: its path is no UTF-8, so no package can name it: rename it"
            ) from error
        return path

    @property
    def hardware(self) -> HardwareSet:
        """The hardware set to compile for.

        A set there is none of is a `CallerError`, one this machine cannot run a `TargetError`.
        """
        wanted, _ = parse_target(self.target)
        return choose(wanted, read_sets(), read_features())

    def cached(self, compiler: str) -> Path:
        """Where the cache keeps the package: a name made from all that decides its bytes."""
        _, pin = parse_target(self.target)
        key = package_key(
            self.checkpoint.identity,
            self.reference,
            self.hardware.name,
            str(pin),
            self.options.numerics,
            ",".join(self.options.held),
            str(self.options.sequences),
            str(served_context(self.checkpoint, self.options)),
            compiler,
            sources_digest(),
            *(() if self.picks is None else (self.picks.identity,)),
            *(("sampler",) if self.options.sampler else ()),
        )
        return self.cache / "packages" / key


@dataclass(frozen=True, slots=True)
class Package:
    """A directory that holds a verified manifest, its kernels and a lock."""

    path: Path
    lock: Lock


def served_context(shape: Shape, options: Options) -> int:
    """The positions of the longest sequence; more than the model has is a `CallerError`."""
    most = shape.config.context
    if options.context is None:
        return min(most, MOST_CONTEXT)
    if not 1 <= options.context <= most:
        raise CallerError(
            f"context {options.context}: `{shape.reference}` serves 1 to {most} positions"
        )
    return options.context


def served_forms(options: Options) -> tuple[FormName, ...]:
    """The forms of a step: a batch only of several sequences.

    Raises `CallerError`: no step decodes as many.
    """
    if not 1 <= options.sequences <= MOST_SEQUENCES:
        raise CallerError(f"sequences {options.sequences}: a step decodes 1 to {MOST_SEQUENCES}")
    return ("decode", "chunk", "batch") if options.sequences > 1 else ("decode", "chunk")


def is_package(directory: Path) -> bool:
    """Whether a compile wrote `directory`."""
    return os.path.isfile(directory / LOCK)  # unlike Path.is_file: no error for what is no path


def read_package(directory: Path) -> Package:
    """The package that a compile wrote into `directory`; a `CallerError` if none did."""
    path = directory / LOCK
    if not is_package(directory):
        raise CallerError(f"`{directory}` is no package: `{LOCK}` cannot be found in it")
    return Package(directory, parse_lock(read_bounded(path), str(path)))


def open_weights(package: Package, place: str | None = None) -> Checkpoint:
    """The checkpoint a package was compiled from, at `place` or where it was; or drawn weights.

    Raises `CallerError`: it is not there; `WeightError`: it is another by now.
    """
    reference = place or package.lock.checkpoint
    try:
        drawn = reference.startswith(DRAWN_PREFIX)
        opened = open_drawn(reference) if drawn else open_checkpoint(reference)
    except CallerError as error:
        if place is not None:
            raise
        raise CallerError(
            f"{error}: `{package.path}` was compiled from it, `--checkpoint` says where it is now"
        ) from error
    try:
        require_identity(opened, package.lock.identity, f"`{package.path}`")
    except WeightError:
        opened.close()
        raise
    return opened
