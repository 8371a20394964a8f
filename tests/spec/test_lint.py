import subprocess
import sys

from bedstone.spec.lint import lint
from definitions import definition

LIGHT = """
import sys
import bedstone.spec.dialect.document, bedstone.spec.identity, bedstone.spec.lint
import bedstone.prove.apply, bedstone.prove.trace_set, bedstone.prove.choose
print(sorted({"torch", "numpy", "safetensors"} & set(sys.modules)))
"""


def messages(**changes):
    return [str(finding) for finding in lint(definition(**changes))]


def test_convention_is_hinted_at():
    found = messages(
        name="mine",
        op_type="scaling",
        axes={"n": {"type": "const", "value": 16}},
        tags=["fused", "model:llama", "stage: decode", "colour:red", "quick"],
        reference="import torch.nn.functional as F\n\ndef run(x):\n    return F.relu(x)\n",
    )
    assert found == [
        "/op_type: `scaling` is not among the published ones",
        "/name: expected the constants in the name, as in `gemm_n4096_k4096`",
        "/tags/3: `colour:red` is in no published namespace",
        "/tags/4: `quick` is in no published namespace",
        "/reference: `torch.nn.functional` hides steps that a reference should show",
    ]


def test_parameters_that_are_not_the_inputs_are_told_of():
    found = messages(op_type="gemm", reference="def run(a, b=1, **rest):\n    return a\n")
    assert found == ["/reference: `run` asks for `a`, which is no input"]
    found = messages(op_type="gemm", reference="def run(a, b=1):\n    return a\n")
    assert found == [
        "/reference: `run` has no parameter for input `x`",
        "/reference: `run` asks for `a`, which is no input",
    ]


def test_work_on_schemas_loads_nothing_heavy():
    done = subprocess.run(
        [sys.executable, "-c", LIGHT],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
