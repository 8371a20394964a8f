"""The rules a manifest must keep, and what a verified one promises.

`check` lists every fault, `verify` returns a `Verified` or raises, `RULES` is the table of rules.
"""

from bedstone.verify.table import RULES
from bedstone.verify.verdict import Verified, check, verify

__all__ = ["RULES", "Verified", "check", "verify"]
