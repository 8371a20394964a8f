"""What an extra installs may be missing: each command that needs it says which."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys
sys.modules["torch"] = None
from bedstone.cli import main
sys.argv = ["bedstone", *sys.argv[1:]]
main()
"""


def ran(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("command", [("define", "build", "."), ("define", "bench", ".")])
def test_a_missing_package_is_named_with_its_extra(command):
    ended = ran(*command)
    assert ended.returncode == 3
    assert ended.stderr == "bedstone: the package `torch` is missing: install `bedstone[define]`\n"


@pytest.mark.parametrize("command", [("kernel", "nowhere", "op"), ("package", "nowhere")])
def test_a_package_that_is_not_there_is_told_before_what_is_missing(command):
    ended = ran("prove", *command)
    assert ended.returncode == 2
    assert ended.stderr == "bedstone: `nowhere` cannot be read: No such file or directory\n"
