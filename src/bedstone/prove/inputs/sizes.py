"""Sizes for a Definition that no Workload was written for: small, and as its constraints ask."""

from collections.abc import Mapping
from fractions import Fraction

from bedstone.errors import DefinitionError
from bedstone.spec import formula
from bedstone.spec.axes import axis_values
from bedstone.spec.definition import Definition

_STARTS = (
    ("pages", 24),
    ("indices", 12),
    ("kv", 12),
    ("total", 6),
    ("nnz", 6),
    ("batch", 3),
    ("seqs", 3),
    ("indptr", 4),
    ("seqlens", 4),
)
"""First guesses by a word in an axis's name; constraints move them."""

_OTHER = 5
_ROUNDS = 8


def propose_sizes(definition: Definition, scale: int = 1) -> dict[str, int]:
    """A size for each variable axis.

    Args:
        definition: Whose axes.
        scale: What first guesses are multiplied by.

    Returns:
        Sizes under which no constraint about axes alone is false.

    Raises:
        DefinitionError: none were found.
    """
    sizes = {name: _start(name) * scale for name in definition.var_axes}
    settled: set[str] = set()
    wrong: list[str] = []
    for _ in range(_ROUNDS):
        values = axis_values(definition, sizes)
        wrong = [c for c in definition.constraints if formula.holds(c, values) is False]
        if not wrong:
            return sizes
        for constraint in wrong:
            _adjust(constraint, sizes, values, settled)
    raise DefinitionError(f"`{definition.name}`: no sizes were found that satisfy `{wrong[0]}`")


def _start(name: str) -> int:
    return next((guess for word, guess in _STARTS if word in name), _OTHER)


def _adjust(
    constraint: str, sizes: dict[str, int], values: Mapping[str, int], settled: set[str]
) -> None:
    """Solve the constraint for one variable axis that no other constraint has moved, if it can."""
    names = sorted(formula.names(constraint) & sizes.keys(), key=lambda n: (n in settled, n))
    for name in names:
        solved = solve(constraint, name, values)
        if solved is not None:
            sizes[name] = solved
            settled.add(name)
            return


def solve(constraint: str, name: str, values: Mapping[str, int]) -> int | None:
    """The size of `name` that makes an equation or a bound hold, if its sides are linear in it."""
    for relation in ("==", "<=", ">="):
        left, mark, right = constraint.partition(relation)
        if mark:
            return _root(f"({left}) - ({right})", name, values)
    return None


def _root(difference: str, name: str, values: Mapping[str, int]) -> int | None:
    try:
        at = [formula.evaluate(difference, {**values, name: x}) for x in (0, 1, 2)]
    except formula.UndecidableError:
        return None
    slope = at[1] - at[0]
    if slope == 0 or at[2] - at[1] != slope:
        return None
    root = Fraction(-at[0]) / Fraction(slope)
    return int(root) if root.denominator == 1 and root >= 0 else None
