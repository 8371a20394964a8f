"""`docs/manifest.md` lists the rules as the table has them, and the differences as the tests do."""

from pathlib import Path

from bedstone.verify import RULES
from fuzz.comparison import ALLOWED
from verify.stored_differences import DIFFERENCES

PAGE = Path(__file__).parents[2] / "docs" / "manifest.md"


def test_the_page_lists_every_rule_in_order() -> None:
    rows = [f"| {rule.id} | {rule.topic} | {rule.requires} |" for rule in RULES]
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    begin = lines.index(rows[0])
    assert lines[begin : begin + len(rows)] == rows


def test_the_page_gives_a_reason_for_every_difference() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [difference for difference in ALLOWED if f"| {difference} |" not in page] == []


def test_every_difference_is_seen_in_a_stored_case() -> None:
    assert set(DIFFERENCES.values()) == set(ALLOWED)
