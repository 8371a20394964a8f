import json

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
