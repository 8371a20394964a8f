import pytest
import torch

from bedstone.errors import CapacityError, DefinitionError
from bedstone.prove.config import Config
from bedstone.prove.problem import Problem, Source
from bedstone.prove.reference import Reference
from definitions import definition, workload

X = {"x": torch.arange(4.0)}


def run(reference, **changes):
    of = definition(reference=reference, **changes)
    return Reference(of).run(dict(X), {"n": 4}, 0)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("import nowhere\n\ndef run(x): ...\n", "does not load: ModuleNotFoundError"),
        ("def run(x):\n    return x[9]\n", "failed: IndexError"),
        ("def run(x):\n    return x.double()\n", "expected `float32`, found `torch.float64`"),
        ("def run(x):\n    return x[:2]\n", r"expected shape \[4\], found \[2\]"),
        ("def run(x):\n    return x, x\n", "expected 1 outputs, found 2"),
    ],
)
def test_a_reference_that_is_wrong_is_named(reference, message):
    with pytest.raises(DefinitionError, match=message):
        run(reference)


def test_a_draft_cannot_be_run():
    with pytest.raises(DefinitionError, match="has a draft reference"):
        Reference(definition(reference="..."))


def test_a_reference_works_on_copies():
    run("def run(x):\n    return x.mul_(2)\n")
    assert X["x"].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_random_references_repeat_and_leave_the_generator_alone():
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    code = "import torch\n\ndef run(x):\n    return torch.rand_like(x)\n"
    assert torch.equal(run(code)["y"], run(code)["y"])
    assert torch.equal(torch.rand(1), expected)


def test_what_dumps_take_for_granted_is_there():
    code = (
        "@torch.no_grad()\ndef _double_reference(x: Optional[torch.Tensor], by=2):\n"
        "    return x * by * math.sqrt(1)\n"
    )
    assert run(code)["y"].tolist() == [0.0, 2.0, 4.0, 6.0]


def test_nan_in_the_reference_is_the_references_fault():
    roots = definition(reference="def run(x):\n    return x.sqrt()\n")
    with pytest.raises(DefinitionError, match=r"gives NaN in `y` at \[\d+\]"):
        Problem(roots, workload(), Config(), Source())


def test_a_workload_larger_than_the_memory_is_refused():
    with pytest.raises(CapacityError, match=r"needs about \d+\.\d GiB"):
        Problem(definition(), workload(n=10**13), Config(), Source())
