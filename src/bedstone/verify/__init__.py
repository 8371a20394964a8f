"""The rules a manifest must keep, and what a verified one promises.

`check` lists every fault; `verify` returns a `Verified`, or raises a `RefusedError` with them all;
`RULES` is the table of rules.
"""

from bedstone.verify.table import RULES
from bedstone.verify.verdict import RefusedError, Verified, check, verify

__all__ = ["RULES", "RefusedError", "Verified", "check", "verify"]
