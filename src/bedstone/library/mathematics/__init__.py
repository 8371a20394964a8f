"""What each entry of the catalog computes: a Definition of a kernel at given sizes."""

from bedstone.library.mathematics.define import define, family_of
from bedstone.library.mathematics.family import Family
from bedstone.library.mathematics.operands import reaches, rounded_codes, rounded_tables

__all__ = ["Family", "define", "family_of", "reaches", "rounded_codes", "rounded_tables"]
