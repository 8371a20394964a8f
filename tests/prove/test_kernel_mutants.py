"""A kernel of ours with one flipped sign, one missed row, one stale output is caught."""

from dataclasses import replace

import pytest

from bedstone.prove.evaluate import evaluate
from bedstone.prove.sandbox.zygote import Zygote
from bedstone.spec.solution import SourceFile
from prove.test_own import posed, small

MUTANTS = [
    # a sign
    (
        "rope", "rope.c",
        "a * c - b * s, n);\n        vf_store_n(y + half",
        "a * c + b * s, n);\n        vf_store_n(y + half",
    ),
    ("decay", "delta.c", "return -vf_exp(a_log)", "return vf_exp(a_log)"),
    (
        "delta", "delta.c",
        "bs_min(VL, n - j)) - found[j / VL])", "bs_min(VL, n - j)) + found[j / VL])",
    ),
    ("linear_q4_0", "format.h", "18\n#define BS_ZERO 8", "18\n#define BS_ZERO 7"),
    # a row
    (
        "set_rows", "rows.c",
        "slot[block->x];\n    if (to >= 0)", "slot[block->x];\n    if (to > 0)",
    ),
    (
        "argmax_rows", "argmax.c",
        "r < rows; r++) {\n        best", "r < rows - 1; r++) {\n        best",
    ),
    (
        "gather", "attention.c",
        "t < bs_min(first + GATHERED, rows)", "t < bs_min(first + GATHERED, rows) - 1",
    ),
    ("add_row", "rows.c", "vf_load_n(a + start + i, n) +", "vf_load_n(a + i, n) +"),
    ("xsum", "mixture.c", "int j = 0; j < chosen; j++) total", "int j = 1; j < chosen; j++) total"),
    # an output left over, or what a state held
    ("conv", "conv.c", "if (s->begins) return (vf){0};", ""),
    (
        "conv", "conv.c",
        "vf_store_n(c->ring + (size_t)t", "if (t) vf_store_n(c->ring + (size_t)t",
    ),
    ("norm_q", "quantize.h", "*q.sums = sum;", ""),
    ("xglu_sg_q4_1", "experts.c", "if (share) share_rows", "if (0) share_rows"),
    # a choice, a bound, a scale
    ("topk", "choice.h", "x[i] > x[best]", "x[i] >= x[best]"),
    ("renorm", "choice.h", "/ sum : x[ids[i]]) * factor", "/ sum : x[ids[i]])"),
    ("attention", "attention.h", "& (at <= q->last)", "& (at < q->last)"),
    ("quantize", "quantize.h", "/ 127.0f", "/ 128.0f"),
]  # fmt: skip


@pytest.fixture(scope="module")
def compiling(tmp_path_factory):
    """A process that forks candidates, which keep what they compile for other tests."""
    with Zygote(tmp_path_factory.mktemp("solutions")) as running:
        yield running


def mutant(solution, path, text, other):
    (source,) = (s for s in solution.sources if s.path == path)
    assert source.content.count(text) == 1, (path, text)
    changed = SourceFile(path, source.content.replace(text, other))
    return replace(solution, sources=tuple(
        changed if s is source else s for s in solution.sources))  # fmt: skip


def test_a_mutant_differs_where_it_says():
    assert len({(entry, other) for entry, _, _, other in MUTANTS}) == len(MUTANTS)
    for entry, path, text, other in MUTANTS:
        assert mutant(small(entry)[1], path, text, other) != small(entry)[1]


@pytest.mark.slow
@pytest.mark.parametrize(("entry", "path", "text", "other"), MUTANTS, ids=lambda value: value[:24])
def test_a_mutant_is_caught_and_the_kernel_is_not(compiling, entry, path, text, other):
    of, solution = small(entry)
    asked = posed(of, entry)
    right = evaluate(asked, solution, compiling)
    assert right.status == "PASSED", right.log
    wrong = evaluate(asked, mutant(solution, path, text, other), compiling)
    assert wrong.status == "INCORRECT_NUMERICAL", wrong.log
