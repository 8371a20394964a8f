"""The shape of the project: layers, sizes, names, and tests that mirror the source."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "bedstone"
MODULES = sorted(SOURCE.rglob("*.py"))
BANNED_NAMES = {"utils", "util", "common", "misc", "helpers", "base"}
MOST_LINES = 400
LONG = {
    "spec/manifest.py": "one vocabulary, the schema's, read from top to bottom",
    "lane/classes.py": "one vocabulary, every class a rule forms",
}
MOST_FUNCTION_LINES = 60


def _id(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def test_imports_point_one_way():
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports"))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", MODULES, ids=_id)
def test_a_file_keeps_to_its_size_and_name(path):
    text = path.read_text()
    assert path.stem not in BANNED_NAMES
    assert text.count("\n") <= MOST_LINES or _id(path) in LONG
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= MOST_FUNCTION_LINES, f"{node.name} has {lines} lines"


def test_every_package_has_tests():
    packages = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    tested = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    assert packages - tested == set()
