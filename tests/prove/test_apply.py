import subprocess
import sys

import pytest
import torch

from bedstone.prove.apply import apply, enable
from bedstone.prove.table import TraceTable
from bedstone.prove.trace_set import append_traces, read_trace_set, write_definition, write_solution
from bedstone.spec.trace import Trace
from definitions import definition, solution, workload
from prove.outcomes import passed

OFF = """
import sys
from bedstone.prove.apply import apply
before = set(sys.modules)

@apply("double_n")
def double(x):
    return x * 2

assert double(3) == 6
print(sorted(m for m in set(sys.modules) - before if not m.startswith("_")))
print(sorted({"torch", "numpy", "json", "bedstone.prove.trace_set"} & set(sys.modules)))
"""


@apply("double_n")
def double(x):
    return ("fallback", x * 2)


@pytest.fixture
def table(tmp_path):
    def made(code, *, passing=False, at=(4,), **evaluation):
        of, one = definition(), solution(code, passing=passing)
        write_definition(tmp_path, of)
        write_solution(tmp_path, of, one)
        traces = [
            Trace("double_n", workload(f"w{n}", n=n), one.name, passed(1.0, **evaluation))
            for n in at
        ]
        append_traces(tmp_path, of, "tester", traces)
        return TraceTable(read_trace_set(tmp_path), "H200", tmp_path / "kernels")

    return made


def test_it_costs_nothing_while_it_is_off():
    done = subprocess.run(
        [sys.executable, "-c", OFF],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n[]\n"


def test_a_measured_solution_stands_in_where_there_is_one(table):
    found = table("def run(x):\n    return ('solution', x * 2)\n")
    four, five = torch.ones(4), torch.ones(5)
    with enable(found):
        assert double(four)[0] == "solution"
        assert double(x=four)[0] == "solution"
        assert double(five)[0] == "fallback"
    assert double(four)[0] == "fallback"
    assert (found.hits, found.misses) == ({"double_n": 2}, {"double_n": 1})
    assert found.why == {
        ("double_n", (("n", 4),)): "`candidate`: 1 ms",
        ("double_n", (("n", 5),)): "`candidate`: measured at other sizes: n=4",
    }


def test_a_destination_passing_solution_is_given_its_outputs(table):
    found = table("import torch\ndef run(x, y):\n    torch.mul(x, 2, out=y)\n", passing=True)
    with enable(found):
        assert torch.equal(double(torch.ones(4)), torch.full((4,), 2.0))


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import nowhere\ndef run(x): ...\n", "does not load: No module named 'nowhere'"),
        ("def setup(x): ...\ndef run(x): ...\n", "does not load: it has a `setup`"),
    ],
)
def test_a_solution_that_cannot_be_used_leaves_the_call_as_it_is(table, code, why):
    found = table(code)
    with enable(found):
        assert double(torch.ones(4))[0] == "fallback"
    assert why in found.why["double_n", (("n", 4),)]


def test_a_call_that_is_none_of_the_definition_is_left_alone(table):
    found = table("def run(x):\n    return ('solution', x)\n")

    @apply("nothing")
    def other(x):
        return x

    with enable(found):
        assert double(torch.ones(2, 2))[0] == "fallback"
        assert other(1) == 1
    assert found.why["double_n", ()].endswith("expected 1 axes in input `x`, found 2 axes")
    assert found.why["nothing", ()] == "no such definition"


def test_the_innermost_table_counts_and_a_name_may_depend_on_the_call(table):
    found = table("def run(x):\n    return ('solution', x)\n")

    @apply(lambda x: f"double_{'n' if x.dim() == 1 else 'nm'}")
    def chosen(x):
        return ("fallback", x)

    empty = TraceTable(found.traces, "B200", found.folder)
    with enable(found):
        assert chosen(torch.ones(4))[0] == "solution"
        with enable(empty):
            assert chosen(torch.ones(4))[0] == "fallback"
        assert chosen(torch.ones(4))[0] == "solution"
    assert "measured on H200, not on B200" in empty.why["double_n", (("n", 4),)]
