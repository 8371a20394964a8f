"""Scripts are imported nowhere: that each one's names of Bedstone are still there."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(p for folder in ("scripts", "benchmarks") for p in (ROOT / folder).glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_what_a_script_takes_from_bedstone_is_there(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bedstone"):
            module = importlib.import_module(node.module or "")
            missing = [each.name for each in node.names if not hasattr(module, each.name)]
            assert missing == [], f"`{node.module}` has no {missing}"
