import json

import pytest
from typer.testing import CliRunner

from bedstone.cli.app import app

RUNNER = CliRunner()


def kept(tmp_path, **changes):
    document = {
        "format": "bedstone-swap",
        "verdict": {"word": "FAIL"},
        "lines": ["a: b", "FAIL: x"],
    }
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(document | changes))
    return RUNNER.invoke(app, ["prove", "show", str(path)])


def test_an_archive_is_shown_with_the_exit_of_its_verdict(tmp_path):
    assert (kept(tmp_path).exit_code, kept(tmp_path).stdout) == (1, "a: b\nFAIL: x\n")
    assert kept(tmp_path, verdict={"word": "INCONCLUSIVE"}).exit_code == 2
    assert kept(tmp_path, verdict={"word": "PASS"}).exit_code == 0


def test_what_is_no_archive_is_refused(tmp_path):
    for changes in (
        {"format": "other"},
        {"verdict": {"word": "MAYBE"}},
        {"verdict": []},
        {"verdict": {"word": []}},
        {"lines": ["\x1b[2J"]},
        {"lines": 3},
    ):
        found = kept(tmp_path, **changes)
        assert found.exit_code == 2
        assert "is no archive" in found.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nowhere"], "`nowhere` cannot be read: No such file"),
        (["text.json"], "`text.json`: not JSON: expecting value (line 1 column 1) [P1]"),
        (["empty"], "`empty` is no package: `manifest.json` cannot be found in it"),
        (["text.json", "--out", "empty"], "`empty` cannot be written: it is a directory"),
        (["text.json", "--html", "no/x"], "`no/x` cannot be written: `no` is no directory"),
    ],
)
def test_what_cannot_be_judged_is_told_in_one_line(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.json").write_text("hello")
    found = RUNNER.invoke(app, ["prove", "swap", options[0], *options])
    assert found.exit_code == 2
    (line,) = found.stderr.splitlines()
    assert message in line


@pytest.mark.parametrize("option", [("--seed", "-1"), ("--logit-kl", "nan"), ("--drift", "-1")])
def test_numbers_that_mean_nothing_are_refused(option, tmp_path):
    found = RUNNER.invoke(app, ["prove", "swap", str(tmp_path), str(tmp_path), *option])
    assert found.exit_code == 2
    assert f"'{option[0]}'" in found.stderr


@pytest.mark.parametrize("command", [["kernel", "text.json", "op"], ["package", "text.json"]])
def test_a_file_that_is_no_manifest_is_named(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.json").write_text("{}")
    found = RUNNER.invoke(app, ["prove", *command])
    assert found.exit_code == 2
    assert found.stderr.startswith("bedstone: `text.json`: ")
