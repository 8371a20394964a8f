"""`docs/how/serve.md` tells every flag, path, field and status there is."""

import inspect
import re
from pathlib import Path
from typing import get_args

from typer.models import OptionInfo

from bedstone.cli import serve
from bedstone.serve.http.schema import OPERATIONS, REFUSED
from bedstone.serve.http.shapes import ChatRequest, CompletionRequest

PAGE = (Path(__file__).parents[2] / "docs" / "how" / "serve.md").read_text()


def test_the_page_tells_every_flag():
    command = inspect.signature(serve.command)
    flags = [flag for name in command.parameters for flag in _flags(command.parameters[name])]
    assert len(flags) > 20
    assert [flag for flag in flags if f"`{flag}" not in PAGE] == []


def _flags(parameter):
    """How an option is spelled; an argument is not."""
    [told] = [each for each in get_args(parameter.annotation) if hasattr(each, "param_decls")]
    if not isinstance(told, OptionInfo):
        return []
    # the first stands where a default does in other uses of the class
    named = [each for each in (told.default, *(told.param_decls or ())) if isinstance(each, str)]
    given = [part for each in named for part in each.split("/")]
    return given or [f"--{parameter.name.replace('_', '-')}"]


def test_the_page_tells_every_path_and_field():
    paths = [f"{each.method.upper()} {each.path}" for each in OPERATIONS]
    assert [path for path in paths if f"`{path}`" not in PAGE] == []
    fields = {*ChatRequest.__struct_fields__, *CompletionRequest.__struct_fields__}
    assert sorted(field for field in fields if f"`{field}`" not in PAGE) == []


def test_the_page_tells_every_status():
    statuses = {*REFUSED, 405} - {200}
    named = {int(found) for found in re.findall(r"\b[45]\d\d\b", PAGE)}
    assert statuses <= named
