"""No launch touches a byte outside its memory, whatever the inputs' domains allow."""

import subprocess
import sys
from pathlib import Path

import pytest

import guarded_remap
import guarded_session
from e2e_cli import environment
from letters import write_tokenizer
from packages import compiled
from tiny_models import write_tiny

pytestmark = pytest.mark.slow

CONTEXT = 40
"""No whole number of pages."""
FAMILIES = ("llama-biases", "qwen3", "qwen2-moe", "gemma3", "qwen3-next", "deepseek-v3")


@pytest.mark.parametrize("family", FAMILIES)
def test_fenced_memory_is_never_left(family, tmp_path, cache):
    write_tiny(family, tmp_path / "checkpoint")
    write_tokenizer(tmp_path / "checkpoint")
    packages = [
        compiled(
            str(tmp_path / "checkpoint"), tmp_path / numerics, cache,
            numerics=numerics, context=CONTEXT, sequences=3,
        ).path
        for numerics in ("precise", "quantized")
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, guarded_session.__file__, cache, *packages],
        env=environment(cache), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("family", ["qwen3-next", "qwen3.5"])
def test_memory_that_went_to_another_state_is_never_touched(family, tmp_path, cache):
    write_tiny(family, tmp_path / "checkpoint")
    write_tokenizer(tmp_path / "checkpoint")
    how = {"numerics": "precise", "context": 64, "sequences": 8}
    package = compiled(str(tmp_path / "checkpoint"), tmp_path / "package", cache, **how).path
    done = subprocess.run(
        [sys.executable, guarded_remap.__file__, cache, package],
        env=environment(cache), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_fence_is_a_fence():
    past = "import guarded_session as g, ctypes as c; m = g.fenced(100); c.memset(m.address, 1, {})"
    env = {"PYTHONPATH": ":".join([str(Path(guarded_session.__file__).parent), *sys.path])}
    ended = [
        subprocess.run([sys.executable, "-c", past.format(count)], env=env, check=False).returncode
        for count in (100, 128, 129)
    ]
    assert ended == [0, 0, -11]
