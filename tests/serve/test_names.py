"""The server and its pool drive any manifest: what they do is read off it, by no name."""

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

import bedstone
from bedstone.build.protocol import Served, protocol_buffers
from bedstone.build.sampler import sampler_buffers
from bedstone.models.families import FAMILIES
from bedstone.spec.manifest import Fill, State

PACKAGES = Path(bedstone.__file__).parent
SERVER = sorted([*(PACKAGES / "serve").rglob("*.py"), *(PACKAGES / "pool").rglob("*.py")])
PROGRAMS = ("prefill", "decode", "decode_chain", "decode_many", "decode_many_chain", "rotations")
STATES = {"k.0": State(bytes_per_token=4), "s.0": State(bytes_per_seq=4)}
BUFFERS = {
    **protocol_buffers(Served(vocab=64, context=64, groups=2), STATES),
    **sampler_buffers("seqs", 2, 64, 8),
}
V7_WORDS = {*get_args(Fill), "groups", "rows", "ranks"}
"""What the format itself calls an input's fill or an axis."""
NAMES = ({*PROGRAMS, *STATES, *BUFFERS} - V7_WORDS) - {"line", "run", "next", "pages", "edits"}
PLAIN = {"line", "run", "next", "pages", "edits"}
"""Names that are words of other things as well: no string of the engine's or the pool's is one."""


def strings(path: Path) -> set[str]:
    """Every string of a source, docstrings aside."""
    tree = ast.parse(path.read_text())
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    }


def test_the_sources_are_looked_at():
    assert {path.parent.name for path in SERVER} >= {"pool", "engine", "serve"}
    assert {"logits", "decode_many", "edit_token"} <= NAMES


@pytest.mark.parametrize("path", SERVER, ids=lambda path: path.stem)
def test_no_buffer_program_or_state_is_named(path):
    assert not strings(path) & NAMES


@pytest.mark.parametrize("package", ["pool", "serve/engine"])
def test_the_engine_knows_no_model_and_no_name_that_is_a_word(package):
    families = "|".join(sorted({re.sub(r"[\d_].*|(Moe)?For.*", "", f).lower() for f in FAMILIES}))
    for path in (PACKAGES / package).rglob("*.py"):
        assert not strings(path) & PLAIN, path
        assert not re.search(families, path.read_text().lower()), path
