"""The command line: one file a subcommand, and how each of them ends.

Exit codes: 0 good, 1 a negative verdict, 2 bad input or use, 3 the machine lacks something (an
error's class carries its own), 130 interrupted, 141 the reader of a pipe left.
"""

from bedstone.cli.app import app


def main() -> None:
    """Run the command that `sys.argv` names and exit."""
    app()


__all__ = ["main"]
