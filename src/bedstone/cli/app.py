"""The table of subcommands, each loaded only when it is called or listed.

What a subcommand needs may be heavy (NumPy, tokenizers, a device), and `bedstone schema` must not
wait for what `bedstone run` imports. The help lists every one of them, so the heavy ones import
inside their functions.
"""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bedstone.cli.guard import guarded
from bedstone.spec.release import VERSION

COMMANDS = {
    "run": "bedstone.cli.run",
    "compile": "bedstone.cli.compile",
    "verify": "bedstone.cli.verify",
    "show": "bedstone.cli.show",
    "plan": "bedstone.cli.plan",
    "cut": "bedstone.cli.cut",
    "schema": "bedstone.cli.schema",
}
"""Each subcommand and the module whose function `command` it is, in the order of the help."""


class _Commands(TyperGroup):
    """A group whose commands are the rows of COMMANDS."""

    def list_commands(self, _ctx: Any) -> list[str]:  # noqa: ANN401  (click's type moves between releases)
        return list(COMMANDS)

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        if cmd_name not in COMMANDS:
            return None
        single = typer.Typer(add_completion=False)
        single.command(cmd_name)(guarded(import_module(COMMANDS[cmd_name]).command))
        return typer.main.get_command(single)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
