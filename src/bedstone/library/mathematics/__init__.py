"""What each entry of the catalog computes: a Definition of a kernel at given sizes."""

from bedstone.library.mathematics.define import define, family_of
from bedstone.library.mathematics.family import Family
from bedstone.library.mathematics.operands import may_round, reaches, rounded_codes, rounded_tables

__all__ = [
    "Family",
    "define",
    "family_of",
    "may_round",
    "reaches",
    "rounded_codes",
    "rounded_tables",
]
