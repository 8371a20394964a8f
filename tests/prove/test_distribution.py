import pytest
import torch

from bedstone.errors import DefinitionError
from bedstone.prove.distribution import judge_draws
from bedstone.spec.workload import Workload
from definitions import definition
from prove.runs import problem, run

SAMPLING = definition(
    name="top_p_sampling_from_probs_v1000",
    op_type="sampling",
    axes={"rows": {"type": "var"}, "vocab_size": {"type": "const", "value": 1000}},
    inputs={
        "probs": {"shape": ["rows", "vocab_size"], "dtype": "float32"},
        "top_p": {"shape": ["rows"], "dtype": "float32"},
    },
    outputs={"samples": {"shape": ["rows"], "dtype": "int64"}},
    reference="import torch\n\ndef run(probs, top_p):\n"
    "    ordered, index = probs.sort(-1, descending=True)\n"
    "    kept = ordered.cumsum(-1) - ordered < top_p[:, None]\n"
    "    drawn = torch.multinomial(ordered * kept, 1)\n"
    "    return index.gather(1, drawn)[:, 0]\n",
)
ON = Workload({"rows": 4}, {}, "w")
OTHER = SAMPLING.reference.replace("torch.multinomial(ordered * kept, 1)", "{}")


@pytest.mark.parametrize(
    ("draw", "status"),
    [
        ("(ordered * kept / -torch.rand_like(ordered).log()).argmax(-1, True)", "PASSED"),
        ("torch.multinomial(kept.float(), 1)", "INCORRECT_NUMERICAL"),
        ("torch.multinomial(ordered, 1)", "INCORRECT_NUMERICAL"),
        ("torch.zeros_like(top_p, dtype=torch.int64)[:, None]", "INCORRECT_NUMERICAL"),
    ],
    ids=["as the reference", "uniformly", "without a bound", "the likeliest"],
)
@pytest.mark.slow
def test_a_sampler_is_judged_by_what_it_draws(zygote, draw, status):
    evaluation = run(zygote, OTHER.format(draw), SAMPLING, ON)
    assert evaluation.status == status, evaluation.log


def test_an_index_outside_the_vocabulary_is_wrong(zygote):
    code = "import torch\ndef run(probs, top_p):\n    return torch.full((4,), 1000)\n"
    evaluation = run(zygote, code, SAMPLING, ON)
    assert evaluation.status == "INCORRECT_NUMERICAL"
    assert "an index outside [0, 1000)" in evaluation.log


def test_random_values_that_no_input_explains_cannot_be_judged():
    noise = definition(reference="import torch\n\ndef run(x):\n    return torch.rand_like(x)\n")
    with pytest.raises(DefinitionError, match="draws `y` at random"):
        problem(noise)


def test_equal_distributions_are_told_from_others():
    weights = torch.rand(3, 500, generator=torch.Generator().manual_seed(0)) ** 8
    random = torch.Generator().manual_seed(1)

    def draws(of):
        return list(torch.multinomial(of, 64, replacement=True, generator=random).T)

    assert judge_draws(draws(weights), draws(weights), weights).fits
    assert not judge_draws(draws(torch.ones_like(weights)), draws(weights), weights).fits
