"""The command line run inside the test's own process."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest import mock

import pytest

from bedstone.cli import main


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def bedstone(*arguments):
    """Run `bedstone` with these arguments."""
    out, err = io.StringIO(), io.StringIO()
    argv = mock.patch.object(sys, "argv", ["bedstone", *map(str, arguments)])
    with argv, redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main()
    return Ended(ended.value.code or 0, out.getvalue(), err.getvalue())
