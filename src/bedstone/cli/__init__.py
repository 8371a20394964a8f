"""The command line: one file a subcommand, and how each of them ends.

Exit codes: 0 good, 1 a negative verdict, 2 bad input or use, 3 the machine lacks something (an
error's class carries its own), 130 interrupted, 141 the reader of a pipe left.
"""

from bedstone.cli.guard import INTERRUPTED, open_streams, tell_usage


def main() -> None:
    """Run the command that `sys.argv` names and exit."""
    open_streams()
    try:
        # importing it takes longer than a short command does: an interrupt meanwhile is one too
        from bedstone.cli.app import app

        code = app(prog_name="bedstone", standalone_mode=False)
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:
        code = tell_usage(error)
        if code is None:
            raise
    raise SystemExit(code)


__all__ = ["main"]
