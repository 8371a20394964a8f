"""The table of subcommands, each loaded only when it is called or listed.

What a subcommand needs may be heavy (NumPy, tokenizers, a device), and `bedstone schema` must not
wait for what `bedstone run` imports. The help lists every one of them, so the heavy ones import
inside their functions.
"""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bedstone.cli.guard import guarded
from bedstone.spec.release import VERSION

COMMANDS = {
    "run": "bedstone.cli.run",
    "serve": "bedstone.cli.serve",
    "compile": "bedstone.cli.compile",
    "verify": "bedstone.cli.verify",
    "show": "bedstone.cli.show",
    "plan": "bedstone.cli.plan",
    "bench": "bedstone.cli.bench",
    "cut": "bedstone.cli.cut",
    "target": "bedstone.cli.target",
    "schema": "bedstone.cli.schema",
    "define": "bedstone.cli.define",
    "prove": "bedstone.cli.prove",
}
"""Each subcommand and the module whose function `command` it is, in the order of the help.

A module with a table `COMMANDS` of its own is a group of further ones; where it has a `command` as
well, that is what the group does unless a row is named first.
"""

_OWN = ""
"""The name of a group's own command, which nobody types."""


def _group(commands: Mapping[str, str], own: ModuleType | None = None) -> type[TyperGroup]:
    """A group whose commands are the rows of a table, loaded when they are named."""

    class Commands(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
            named = own is None or (args and args[0] in commands)
            return super().parse_args(ctx, args if named else [_OWN, *args])

        def list_commands(self, _ctx: Any) -> list[str]:  # noqa: ANN401  (click's type moves between releases)
            return list(commands)

        def get_command(self, _ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
            if own is not None and cmd_name == _OWN:
                return _single(cmd_name, own)
            if cmd_name not in commands:
                return None
            return _command(cmd_name, import_module(commands[cmd_name]))

    return Commands


def _command(name: str, module: ModuleType) -> Any:  # noqa: ANN401
    """A module's function `command`, or the group of its own table."""
    if hasattr(module, "COMMANDS"):
        own = module if hasattr(module, "command") else None
        group = typer.Typer(name=name, cls=_group(module.COMMANDS, own), **_GROUP)
        group.callback(help=module.__doc__)(_nothing)
        return typer.main.get_command(group)
    return _single(name, module)


def _single(name: str, module: ModuleType) -> Any:  # noqa: ANN401
    """A module's function `command`."""
    single = typer.Typer(add_completion=False)
    single.command(name)(guarded(module.command))
    return typer.main.get_command(single)


def _nothing() -> None:
    """A group has nothing to do before its command."""


_GROUP: dict[str, Any] = {
    "no_args_is_help": True,
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


app = typer.Typer(cls=_group(COMMANDS), **_GROUP)


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    print(f"bedstone {VERSION}")
    raise typer.Exit


@app.callback()
def bedstone(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Turn a language model into a program that can be checked, then run it."""
