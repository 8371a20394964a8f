"""Sizes for a Definition that no Workload was written for: small, and as its constraints ask."""

from collections.abc import Mapping

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
        solved = formula.solve(constraint, name, values)
        if solved is not None:
            sizes[name] = solved
            settled.add(name)
            return
