"""How a command ends: one line for an error with a cause, silence for a user who left."""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from bedstone.errors import BedstoneError

INTERRUPTED = 130
"""128 + SIGINT, as a shell reports it."""

PIPE_CLOSED = 141
"""128 + SIGPIPE."""

P = ParamSpec("P")
ResultT = TypeVar("ResultT")


def guarded(command: Callable[P, ResultT]) -> Callable[P, ResultT]:
    """`command` with its expected endings turned into exit codes.

    A `BedstoneError` is one message on stderr and the code its class carries. Any other exception
    is a fault of ours and keeps its traceback.
    """

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> ResultT:
        try:
            result = command(*args, **kwargs)
            sys.stdout.flush()
        except BedstoneError as error:
            print(f"bedstone: {error}", file=sys.stderr)
            raise SystemExit(error.exit_code) from None
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None
        except BrokenPipeError:
            # The interpreter flushes stdout once more on its way out; there is nobody to tell.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(PIPE_CLOSED) from None
        return result

    return run
