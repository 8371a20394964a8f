"""Asks the reference reader (the released `kern-llm` wheel) what it says of manifests.

Its `Runtime` parses and verifies a whole manifest before it opens a driver, so on any machine a
refusal carries every diagnostic and every other failure means that the manifest was accepted. It
prints and panics, so it lives in a child process that answers JSON lines over a pipe.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

AVAILABLE = find_spec("kern") is not None

REFUSAL = "manifest failed verification:"
SEPARATOR = "\n  - "


@dataclass(frozen=True, slots=True)
class Answer:
    """The reference's verdict and, for a refusal, its diagnostics in order."""

    accepted: bool
    messages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reader:
    """A running reference reader."""

    process: subprocess.Popen[str]

    def ask(self, text: str) -> Answer:
        """The reference's answer for one manifest's text."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(text) + "\n")
        self.process.stdin.flush()
        accepted, messages = json.loads(self.process.stdout.readline())
        return Answer(accepted, tuple(messages))

    def ask_all(self, texts: Iterable[str]) -> Iterator[Answer]:
        """The reference's answers, in order."""
        return map(self.ask, texts)


@contextmanager
def reference_reader() -> Iterator[Reader]:
    """A reference reader for the length of a `with` block."""
    with subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        yield Reader(process)
        assert process.stdin is not None
        process.stdin.close()


def _serve() -> None:
    with tempfile.TemporaryDirectory() as folder:
        manifest, kernels = Path(folder, "manifest.json"), Path(folder, "kernels")
        kernels.mkdir()
        for line in sys.stdin:
            manifest.write_text(json.loads(line), encoding="utf-8")
            said = _refusal(manifest, kernels)
            sys.stdout.write(json.dumps([said is None, said or []]) + "\n")
            sys.stdout.flush()


def _refusal(manifest: Path, kernels: Path) -> list[str] | None:
    import kern

    try:
        kern.Runtime(str(manifest), str(kernels), [], 0, None)
    except ValueError as error:
        _, found, rest = str(error).partition(REFUSAL)
        return rest.split(SEPARATOR)[1:] if found else None
    except BaseException as error:  # the wheel's panics derive from BaseException alone
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
    return None


if __name__ == "__main__":
    _serve()
