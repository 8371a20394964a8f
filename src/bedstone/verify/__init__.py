"""The rules a manifest must keep, and what a verified one promises.

`check` lists every fault; `verify` returns a `Verified`, or raises a `RefusedError` with them all;
`RULES` is the table of rules. The rules are loaded when one of these is first asked for: a load of
what was verified before needs none.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedstone.verify.table import RULES
    from bedstone.verify.verdict import RefusedError, check, verify
    from bedstone.verify.verified import Verified

__all__ = ["RULES", "RefusedError", "Verified", "check", "verify"]

_HOMES = {
    "RULES": "bedstone.verify.table",
    "RefusedError": "bedstone.verify.verdict",
    "Verified": "bedstone.verify.verified",
    "check": "bedstone.verify.verdict",
    "verify": "bedstone.verify.verdict",
}


if not TYPE_CHECKING:  # a type checker would take any name for one of these

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
        return getattr(import_module(_HOMES[name]), name)
