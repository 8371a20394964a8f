"""Pages that show commands and what they print: followed step by step."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """A page's commands and what it shows of their output, in order."""
    return [(match[1], match[2]) for match in BLOCK.finditer(page.read_text())]


def follow(page, folder, **environment):
    """Run a page's commands in a folder; what it shows and they did not print."""
    script, expected = ["set -eu"], []
    for number, (kind, text) in enumerate(blocks(page)):
        if kind == "sh":
            script += [f'echo "=== {number}"', text]
            last = number
        else:
            expected += [(last, line) for line in text.splitlines()]
    done = subprocess.run(
        ["sh", "-c", "\n".join(script)],
        cwd=folder,
        env={**_environment(folder), **environment},
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    parts = re.split(r"^=== (\d+)\n", done.stdout, flags=re.MULTILINE)
    told = dict(zip(map(int, parts[1::2]), parts[2::2], strict=True))
    return [f"{line}: {told[at]}" for at, line in expected if not _shown(line, told[at])]


def _shown(line, output):
    """Whether a line that leaves parts out is a line of the output."""
    parts = map(re.escape, line.split("…"))
    return re.search(rf"^{'.*'.join(parts)}$", output, re.MULTILINE)


def _environment(folder):
    """A shell's whose `bedstone` and `python` are those of this run."""
    tools = folder / "tools"
    tools.mkdir()
    start = f'exec {sys.executable} -c "from bedstone.cli import main; main()" "$@"'
    for name, text in (("bedstone", start), ("python", f'exec {sys.executable} "$@"')):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
    }
