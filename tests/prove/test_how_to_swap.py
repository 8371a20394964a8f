"""The page on swapping a kernel, followed step by step."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from letters import write_tokenizer
from tiny_models import write_tiny

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how/swap-a-kernel.md"
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks():
    """The page's commands and what it shows of their output, in order."""
    return [(match[1], match[2]) for match in BLOCK.finditer(PAGE.read_text())]


def shown(line, output):
    """Whether a line that leaves parts out is a line of the output."""
    parts = map(re.escape, line.split("…"))
    return re.search(rf"^{'.*'.join(parts)}$", output, re.MULTILINE)


def shell(folder, cache):
    """A shell in the folder whose `bedstone` and `python` are those of this run."""
    tools = folder / "tools"
    tools.mkdir()
    start = f'exec {sys.executable} -c "from bedstone.cli import main; main()" "$@"'
    for name, text in (("bedstone", start), ("python", f'exec {sys.executable} "$@"')):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    checkpoint = folder / "checkpoint"
    write_tiny("llama", checkpoint)
    write_tokenizer(checkpoint)
    return {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "BEDSTONE_CACHE": str(cache),
        "CHECKPOINT": str(checkpoint),
    }


@pytest.mark.slow
def test_the_page_is_followed_step_by_step(tmp_path):
    script, expected = ["set -eu"], []
    for number, (kind, text) in enumerate(blocks()):
        if kind == "sh":
            script += [f'echo "=== {number}"', text]
            last = number
        else:
            expected += [(last, line) for line in text.splitlines()]
    done = subprocess.run(
        ["sh", "-c", "\n".join(script)],
        cwd=tmp_path,
        env=shell(tmp_path),
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    parts = re.split(r"^=== (\d+)\n", done.stdout, flags=re.MULTILINE)
    told = dict(zip(map(int, parts[1::2]), parts[2::2], strict=True))
    missing = [(at, line) for at, line in expected if not shown(line, told[at])]
    assert missing == [], "\n".join(told[at] for at, _ in missing)


def test_the_page_shows_output_of_every_proof():
    commands = [text for kind, text in blocks() if kind == "sh"]
    assert sum("bedstone prove" in text for text in commands) == 5
    assert sum(kind == "text" for kind, _ in blocks()) == 4
