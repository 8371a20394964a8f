"""`docs/lane.md` lists the rules, the reasons and the passes as the lane has them."""

import re
from pathlib import Path
from typing import get_args

from bedstone import lane
from bedstone.lane.plan import RULES
from bedstone.lane.schedule import Reason
from bedstone.lane.table import TABLE

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "lane.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The cells of the table that begins with a row."""
    lines = PAGE.splitlines()
    begin = lines.index(heading) + 2
    end = next(at for at in range(begin, len(lines)) if not lines[at].startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[begin:end]]


def test_the_page_lists_every_rule_in_order_with_the_reasons_it_may_not_fire_for() -> None:
    listed = [
        (rule.strip("`"), reasons) for rule, _, reasons in rows("| rule | joins | reasons not to |")
    ]
    reasons = {rule.name: dict.fromkeys(one.reason for one in rule.legal) for rule in TABLE}
    assert listed == [(name, ", ".join(each)) for name, each in reasons.items()]


def test_the_page_names_every_step_that_can_be_held_back() -> None:
    assert [name for name in RULES if f"`{name}`" not in PAGE] == []


def test_the_page_explains_every_reason() -> None:
    assert [reason for reason, _ in rows("| reason | what is wrong |")] == list(get_args(Reason))


def test_the_modules_and_the_tests_that_the_page_names_exist() -> None:
    modules = {
        name
        for _, names, _ in rows("| pass | module | what it decides |")
        for name in names.split(", ")
    }
    (source,) = lane.__path__
    assert [name for name in modules if not Path(source, f"{name.strip('`')}.py").exists()] == []
    tests = re.findall(r"`(\w+/test_\w+\.py)`", PAGE)
    assert len(tests) > 14
    assert [name for name in tests if not (TESTS / name).exists()] == []
