"""Which hardware sets a subcommand of `bedstone target` is about."""

from typing import TYPE_CHECKING, Annotated

import typer

from bedstone.errors import CallerError

if TYPE_CHECKING:
    from bedstone.target.hardware import HardwareSet

HardwareArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[HARDWARE]…", help="Hardware sets by name.")
]
AllOption = Annotated[bool, typer.Option("--all", help="Every hardware set there is.")]


def chosen_sets(names: list[str] | None, every: bool) -> "list[HardwareSet]":
    """The sets named, all that have kernels, or the best this machine runs."""
    from bedstone.target.cpu import runnable
    from bedstone.target.features import read_features
    from bedstone.target.hardware import find_set, read_sets

    sets = read_sets()
    if every:
        if names:
            raise CallerError(f"`--all` is every hardware set: `{names[0]}` cannot be named too")
        return [each for each in sets.values() if each.form is not None]
    wanted = names or list(runnable(sets, read_features())[:1])
    return [find_set(name, sets) for name in wanted]
