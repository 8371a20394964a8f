"""A sample of `scripts/mutate_swap.py`: one edit drawn at random is never a false PASS."""

import numpy as np
import pytest

from swap_mutants import Subject, closer, drawn, mutations, tried
from swaps import Edit, rebuilt

NORMED = "return vf_load_n(x + i, n) * factor * (offset + vf_load_n(w + i, n));"


def norm(new: str) -> Edit:
    return "norm.h", NORMED, new


SOURCE = """
/* a comment with 3 + 4 */
static int last(const int *x, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++) best = bs_min(best, x[i] + 2);
    return best;
}
"""


def test_an_edit_changes_one_line_of_code_and_each_line_in_turn():
    rng = np.random.default_rng(0)
    drawn_from = mutations("last.c", SOURCE, rng)
    found = [next(drawn_from) for _ in range(200)]
    assert {each.line for each in found} == {5, 6, 7}
    assert {each.what for each in found} == {"bound or sign", "constant", "index", "sign"}
    for each in found:
        name, old, new = each.edit
        assert (name, SOURCE.count(old)) == ("last.c", 1)
        assert new != old
    edited = {each.new.strip() for each in found}
    assert "for (int i = 1; i <= n; i++) best = bs_min(best, x[i] + 2);" in edited
    assert "for (int i = 1; i < n; i++) best = bs_min(best, x[i + 1] + 2);" in edited
    assert "for (int i = 1; i < n; i++) best = bs_max(best, x[i] + 2);" in edited
    assert "int best = -1;" in edited
    assert "return -best;" in edited


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_mutant_that_passes_is_none(seed, package, cache, tmp_path):
    subject = Subject("llama", package, cache)
    rng = np.random.default_rng(seed)
    result = tried(subject, *drawn(subject, rng), tmp_path / "mutant")
    assert result.kind != "false PASS", result
    assert result.kind != "caught" or result.named, result


@pytest.mark.slow
def test_what_a_closer_look_is_for(package, cache, tmp_path):
    """An error that a judge with wide bounds lets through is no rounding."""
    subject = Subject("llama", package, cache)
    edits = {
        "false PASS": NORMED.replace(";", " * 1.02f;"),
        "equivalent": NORMED.replace("factor", "1.0f * factor"),
        "rounding": NORMED.replace("factor * (", "(factor * (").replace(";", ");"),
    }
    for kind, new in edits.items():
        other = rebuilt(package, tmp_path / kind, "norm", norm(new))
        assert closer(subject, other)[0] == kind
