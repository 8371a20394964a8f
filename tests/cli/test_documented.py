"""Commands as the documentation prints them: each exists, with the options it is given there."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from bedstone.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
CALL = re.compile(r"^(?:\w+=\S+ )*bedstone (.+)$")


def calls(page: Path) -> list[list[str]]:
    """The words behind `bedstone` of every line of a page's shell blocks, a comment left out."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(), flags=re.DOTALL)
    lines = (line for block in blocks for line in block.replace("\\\n", "").splitlines())
    found = (CALL.match(line.strip()) for line in lines)
    return [shlex.split(match[1], comments=True) for match in found if match]


CALLS = [(page.name, words) for page in PAGES for words in calls(page)]


def test_every_subcommand_is_printed_somewhere():
    assert len(CALLS) > 40
    printed = {words[0] for _, words in CALLS}
    assert printed == set(typer.main.get_command(app).list_commands(None))


@pytest.mark.parametrize(("page", "words"), CALLS, ids=lambda value: str(value)[:60])
def test_what_is_printed_can_be_typed(page, words):
    command, at = typer.main.get_command(app), 0
    while hasattr(command, "list_commands") and words[at] in command.list_commands(None):
        command, at = command.get_command(None, words[at]), at + 1
    own = getattr(command, "get_command", lambda *_: command)(None, "")
    assert own is not None, f"{page}: `{words[at]}` is no subcommand"
    known = {name for param in own.params for name in (*param.opts, *param.secondary_opts)}
    given = {word.partition("=")[0] for word in words[at:] if re.match(r"--?[a-z]", word)}
    assert given <= known, page
