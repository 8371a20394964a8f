import json

import pytest

from command_line import bedstone
from conformance_cases import ROOT, normalized_text

UNCUT = ROOT / "accept" / "16_uncut.json"


def test_the_stages_are_written_as_the_reference_writes_them(tmp_path):
    out = tmp_path / "stages"
    ended = bedstone("cut", UNCUT, 2, "-o", out)
    assert (ended.code, ended.err) == (0, "")
    assert sorted(path.name for path in out.iterdir()) == ["stage-0.json", "stage-1.json"]
    assert (out / "stage-0.json").read_text() == normalized_text("17_cut_stage0")
    assert (out / "stage-1.json").read_text() == normalized_text("18_cut_stage1")
    assert ended.out.splitlines()[0].split() == (
        f"{out}/stage-0.json 4 calls 8.2 KiB weights states 1 x 64 bytes a token".split()
    )


def test_every_stage_is_a_manifest_that_verify_accepts(tmp_path):
    bedstone("cut", UNCUT, 1, 2, 3, "-o", tmp_path / "stages")
    for stage in range(4):
        ended = bedstone("verify", tmp_path / "stages" / f"stage-{stage}.json", "--json")
        assert (ended.code, json.loads(ended.out)["verdict"]) == (0, "accepted")


@pytest.mark.parametrize("points", [[0], [4], [2, 1]])
def test_a_cut_that_is_refused_writes_nothing(tmp_path, points):
    ended = bedstone("cut", UNCUT, *points, "-o", tmp_path / "stages")
    assert (ended.code, ended.out) == (2, "")
    assert "cannot be cut there" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_what_stands_at_the_place_is_kept(tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    ended = bedstone("cut", UNCUT, 2, "-o", tmp_path)
    assert ended.code == 2
    assert str(tmp_path) in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]
