"""Small Definitions, Solutions and Workloads that several tests start from."""

from bedstone.spec.dialect.parse_definition import parse_definition
from bedstone.spec.solution import BuildSpec, Solution, SourceFile
from bedstone.spec.workload import Workload

TENSOR = {"shape": ["n"], "dtype": "float32"}


def definition_value(**changes):
    """The JSON value of `y = 2 * x`, with members replaced."""
    value = {
        "name": "double_n",
        "op_type": "scale",
        "axes": {"n": {"type": "var"}},
        "inputs": {"x": TENSOR},
        "outputs": {"y": TENSOR},
        "reference": "def run(x):\n    return 2 * x\n",
    }
    return {k: v for k, v in (value | changes).items() if v is not ...}


def definition(**changes):
    return parse_definition(definition_value(**changes)).require("definition")


def solution(code, *, of="double_n", passing=False, name="candidate", **spec):
    build = BuildSpec(("python",), ("any",), "main.py::run", destination_passing=passing, **spec)
    return Solution(name, of, "tester", build, (SourceFile("main.py", code),))


def workload(uuid="w", **axes):
    return Workload(axes or {"n": 16}, {}, uuid)
