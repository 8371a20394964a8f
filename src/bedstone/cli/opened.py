"""The package a command line names, or the one that the checkpoint it names compiles to."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.cli.environment import cache_directory
from bedstone.cli.options import Numerics
from bedstone.cli.picks import read_picks
from bedstone.cli.progress import Stages
from bedstone.errors import CallerError

if TYPE_CHECKING:
    from bedstone.build.request import Package
    from bedstone.checkpoint.checkpoint import Checkpoint


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a checkpoint is to be compiled; None and `auto` leave it to us.

    `sequences` and `sampler` are of a compile only: a package has what it has. `weights` is of a
    package: where its checkpoint lies now.
    """

    numerics: Numerics | None
    context: int | None
    target: str
    sequences: int
    traces: Path | None = None
    sampler: bool = False
    weights: str | None = None

    def require_so(self, package: "Package") -> None:
        """Accept a package that was compiled as wanted.

        Raises `CallerError`: it was compiled in another way, and stays so.
        """
        lock = package.lock
        if self.traces is not None:
            raise CallerError(
                f"`{package.path}` has its kernels already, `--traces` picks them in a compile: "
                f"run its checkpoint `{lock.checkpoint}`"
            )
        target = None if self.target == "auto" else self.target
        for option, asked, made in (
            ("numerics", self.numerics, lock.numerics),
            ("context", self.context, lock.context),
            ("target", target, lock.target),
        ):
            if asked not in {None, made}:
                raise CallerError(
                    f"`{package.path}` was compiled with {option} `{made}`, `--{option}` is "
                    f"`{asked}`: run its checkpoint `{lock.checkpoint}`"
                )


def open_package(reference: str, wanted: Wanted, stages: Stages) -> "tuple[Checkpoint, Package]":
    """The checkpoint, open, and its package: the one named, or the one in the cache."""
    from bedstone.build.request import is_package, open_weights, read_package
    from bedstone.checkpoint.reference import open_checkpoint

    if is_package(Path(reference)):
        package = read_package(Path(reference))
        wanted.require_so(package)
        return open_weights(package, wanted.weights), package
    if wanted.weights is not None:
        raise CallerError(f"`--checkpoint` is of a package, `{reference}` is none")
    opened = open_checkpoint(reference)
    return opened, compiled(opened, wanted, stages)


def compiled(opened: "Checkpoint", wanted: Wanted, stages: Stages) -> "Package":
    """The checkpoint's package in the cache, compiled unless it is there."""
    from bedstone.build.compiler import compiler_identity
    from bedstone.build.request import Options, Request, is_package, read_package
    from bedstone.target.cache import only_one, require_cache

    numerics = wanted.numerics or Numerics.quantized
    options = Options(
        numerics.value, wanted.context, sequences=wanted.sequences, sampler=wanted.sampler
    )
    picks = read_picks(wanted.traces, opened, wanted.target)
    request = Request(opened, options, cache_directory(), wanted.target, picks)
    package = request.cached(compiler_identity(request.hardware.vendor))
    if is_package(package):
        return read_package(package)
    require_cache(package.parent)
    with only_one(package):
        if is_package(package):
            return read_package(package)
        # the planner is not worth importing for a package that is already there
        from bedstone.build.compile import compile_checkpoint

        return compile_checkpoint(request, package, stages.begin)
