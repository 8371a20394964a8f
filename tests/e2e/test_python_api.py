"""`bedstone` from Python, as the README prints it and as it is called wrongly."""

import re
from pathlib import Path

import pytest

import bedstone
from smollm2 import REFERENCE

README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.mark.slow
def test_the_example_of_the_readme_prints_tokens(tmp_path, modules, monkeypatch, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    kept = tmp_path / "home/.cache/bedstone"
    kept.mkdir(parents=True)
    (kept / "modules").symlink_to(modules)
    exec(compile(example, "README.md", "exec"), {})  # noqa: S102  (the README is ours)
    tokens = capsys.readouterr().out.split()
    assert len(tokens) == 16
    with bedstone.load("smollm2", cache="home/.cache/bedstone") as session:
        assert list(map(str, session.generate([1, 2, 3], max_tokens=16))) == tokens


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda out: bedstone.compile(Path("nowhere"), out=out), "`nowhere` does not exist"),
        (lambda out: bedstone.compile(REFERENCE, out=out, numerics="fast"), "numerics `fast`"),
        (lambda out: bedstone.compile(REFERENCE, out=out, context=0), "context 0"),
        (lambda out: bedstone.compile(REFERENCE, out=out, sequences=65), "a step decodes 1 to 64"),
        (lambda _: bedstone.plan(REFERENCE, sequences=0), "a step decodes 1 to 64"),
        (lambda _: bedstone.plan(REFERENCE, form="batch", sequences=1), "of several sequences"),
        (lambda _: bedstone.plan(Path("nowhere")), "`nowhere` does not exist"),
        (lambda _: bedstone.plan(REFERENCE, form="prompt"), "no form `prompt`: .*decode"),
        (lambda _: bedstone.plan(REFERENCE, held=("nothing",)), "cannot hold back `nothing`"),
        (bedstone.load, "is no package"),
        (lambda out: bedstone.load(str(out)), "is no package"),
        (lambda out: bedstone.load(out, threds=1), "takes no `threds`"),
    ],
)
def test_a_wrong_call_is_an_error_with_a_cause(tmp_path, call, message):
    with pytest.raises(bedstone.BedstoneError, match=message):
        call(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
