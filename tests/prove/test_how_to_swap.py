"""The page on swapping a kernel, followed step by step."""

import pytest

from letters import write_tokenizer
from pages import ROOT, blocks, follow
from tiny_models import write_tiny

PAGE = ROOT / "docs/how/swap-a-kernel.md"


@pytest.mark.slow
def test_the_page_is_followed_step_by_step(tmp_path, cache):
    checkpoint = tmp_path / "checkpoint"
    write_tiny("llama", checkpoint)
    write_tokenizer(checkpoint)
    places = {"CHECKPOINT": str(checkpoint), "BEDSTONE_CACHE": str(cache)}
    assert follow(PAGE, tmp_path, **places) == []


def test_the_page_shows_output_of_every_proof():
    commands = [text for kind, text in blocks(PAGE) if kind == "sh"]
    assert sum("bedstone prove" in text for text in commands) == 5
    assert sum(kind == "text" for kind, _ in blocks(PAGE)) == 4
