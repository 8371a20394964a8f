"""How a command ends: one line for an error with a cause, silence for a user who left."""

import io
import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from bedstone.errors import BedstoneError, CallerError, DeviceError

INTERRUPTED = 130
"""128 + SIGINT, as a shell reports it."""

PIPE_CLOSED = 141
"""128 + SIGPIPE."""

P = ParamSpec("P")
ResultT = TypeVar("ResultT")


def guarded(command: Callable[P, ResultT]) -> Callable[P, ResultT]:
    """`command` with its expected endings turned into exit codes.

    A `BedstoneError` is one message on stderr and the code its class carries; so is a file that
    the system does not let us use. Any other exception is a fault of ours and keeps its traceback.
    """

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> ResultT:
        try:
            result = command(*args, **kwargs)
            sys.stdout.flush()
        except BedstoneError as error:
            print(f"bedstone: {plain(str(error))}", file=sys.stderr)
            raise SystemExit(error.exit_code) from None
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None
        except BrokenPipeError:
            _silence_stdout()
            raise SystemExit(PIPE_CLOSED) from None
        except OSError as error:
            if error.filename is not None:
                print(f"bedstone: {plain(_unusable(error))}", file=sys.stderr)
                raise SystemExit(CallerError.exit_code) from None
            # only a stream has no name
            _silence_stdout()
            print(f"bedstone: the output cannot be written: {error.strerror}", file=sys.stderr)
            raise SystemExit(DeviceError.exit_code) from None
        return result

    return run


def plain(text: str) -> str:
    """The text without what a terminal acts on: names come from files of anyone's."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def _unusable(error: OSError) -> str:
    return f"`{os.fsdecode(error.filename)}` cannot be used: {error.strerror or error}"


def _silence_stdout() -> None:
    """The interpreter flushes stdout once more on its way out; there is nobody to tell."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_streams() -> None:
    """Make the standard streams take and give any text.

    One that the caller closed leads nowhere. A character that stdout's encoding lacks is written as
    its escape; bytes of stdin that are no text arrive as surrogates, which the tokenizer refuses.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  (for the process's life)
    for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def tell_usage(error: Exception) -> int | None:
    """Print what is wrong with the arguments, in a line; the exit code.

    None where the error is of another kind. The argument parser's own classes move between its
    releases, what they offer does not.
    """
    message = getattr(error, "format_message", None)
    code = getattr(error, "exit_code", None)
    if message is None or not isinstance(code, int):
        return None
    # without a command the parser has printed the help, and says no more
    if text := " ".join(message().split()).rstrip("."):
        path = getattr(getattr(error, "ctx", None), "command_path", "bedstone")
        # a group's own command has no name
        asked = " ".join(path.split())
        print(f"bedstone: {plain(text)}; see `{asked} --help`", file=sys.stderr)
    return code
