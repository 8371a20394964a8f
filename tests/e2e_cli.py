"""The `bedstone` command in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    def require_one_line(self, *words: str) -> None:
        """One line on stderr that holds `words`, nothing on stdout, exit 2."""
        assert self.code == 2, self
        assert self.out == "", self
        lines = self.err.strip().splitlines()
        assert len(lines) == 1, self
        assert lines[0].startswith("bedstone: "), self
        for word in words:
            assert word in lines[0], self


def environment(cache: Path) -> dict[str, str]:
    """This process's environment with the source on the path and a cache of its own."""
    return {**os.environ, "BEDSTONE_CACHE": str(cache), "PYTHONPATH": str(SOURCE)}


def run_cli(arguments: Sequence[str], cache: Path) -> Ended:
    """Run `bedstone ARGUMENTS`."""
    done = subprocess.run(
        [sys.executable, "-c", "from bedstone.cli import main; main()", *arguments],
        env=environment(cache),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)
