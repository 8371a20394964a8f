"""The whole table: every topic's rows in the order faults are reported."""

from bedstone.verify.facts import Facts
from bedstone.verify.format import CUT_ROWS, FORMAT_ROWS
from bedstone.verify.rule import Rows, rules_of

MANIFEST_ROWS: Rows[Facts] = (
    *FORMAT_ROWS,
    *CUT_ROWS,
)

RULES = tuple({rule.id: rule for rule in rules_of(MANIFEST_ROWS)}.values())
