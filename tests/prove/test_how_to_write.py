"""The page on writing a kernel, followed step by step."""

import json

import pytest

from pages import ROOT, follow

PAGE = ROOT / "docs/how/write-a-kernel.md"


@pytest.mark.slow
def test_the_page_is_followed_step_by_step(tmp_path, cache):
    assert follow(PAGE, tmp_path, BEDSTONE_CACHE=str(cache)) == []
    (traces,) = (tmp_path / "own" / "traces").rglob("*.jsonl")
    last = json.loads(traces.read_text().splitlines()[-1])
    assert (last["solution"], last["evaluation"]["status"]) == ("over", "INCORRECT_NUMERICAL")
    assert "memory behind the end of `y` was written" in PAGE.read_text()
    assert last["evaluation"]["log"] == "memory behind the end of `y` was written"
