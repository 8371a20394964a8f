"""The models a set serves, and whose kernels serve them."""

import pytest

from bedstone.checkpoint.hf_families import FAMILIES
from bedstone.target.hardware import read_sets
from bedstone.target.models import read_models
from bedstone.target.records import RecordError
from kernel_trees import MODEL, hardware, write_tree


def test_every_family_that_is_read_has_a_model_for_any_size():
    models = read_models(read_sets()["cpu-generic"])
    wildcards = {
        row.model_type
        for model in models.values()
        for row in model.record.routing.model_types
        if row.hidden_size is None
    }
    assert {family.model_type for family in FAMILIES.values()} == wildcards


def test_a_set_serves_its_own_models_and_inherited_ones(tmp_path):
    kernels = write_tree(
        tmp_path,
        hardware("base"),
        hardware("leaf", inherits="base"),
        {"base/a/MODEL.toml": MODEL, "leaf/a/MODEL.toml": MODEL, "base/b/MODEL.toml": MODEL},
        {"leaf/b/q8_0/norm.c": "", "base/b/q4_0/norm.c": ""},
    )
    models = read_models(read_sets(kernels)["leaf"], kernels)
    assert list(models) == ["a", "b"]
    assert models["a"].path == kernels / "leaf" / "a" / "MODEL.toml"
    assert models["b"].quantizations == ("q4_0", "q8_0")


def test_a_model_may_be_served_by_the_kernels_of_another(tmp_path):
    borrowed = MODEL.replace("[routing]", '[routing]\nkernels = "a"')
    kernels = write_tree(
        tmp_path,
        hardware("base"),
        {"base/a/MODEL.toml": MODEL, "base/a/q8_0/n.c": "", "base/b/MODEL.toml": borrowed},
    )
    model = read_models(read_sets(kernels)["base"], kernels)["b"]
    assert (model.kernels, model.quantizations) == ("a", ("q8_0",))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [("c", "no model `c`"), ("aa", "no model `aa`: did you mean `a`?"), ("b", "another model")],
)
def test_kernels_are_those_of_a_model_that_has_its_own(tmp_path, wanted, message):
    def of(name: str) -> str:
        return MODEL.replace("[routing]", f'[routing]\nkernels = "{name}"')

    kernels = write_tree(
        tmp_path,
        hardware("base"),
        {
            "base/a/MODEL.toml": MODEL,
            "base/b/MODEL.toml": of("a"),
            "base/d/MODEL.toml": of(wanted),
        },
    )
    with pytest.raises(RecordError, match=r"base/d/MODEL\.toml:2: `routing\.kernels`: ") as refused:
        read_models(read_sets(kernels)["base"], kernels)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[routing]\nmodel_types = []\n", "routing.model_types"),
        (
            '[routing]\nmodel_types = [{ model_type = "a" }, { model_type = "a" }]\n',
            "routing.model_types[1]",
        ),
        (f'{MODEL}match_names = ["qwen", "--"]\n', "routing.match_names[1]"),
        (f"{MODEL}[policy.sampling.tools]\npresence_penalty = 0.5\n", "policy.sampling.tools"),
        (f"{MODEL}[policy.sampling.tools]\nrepetition_penalty = 1.1\n", "policy.sampling.tools"),
    ],
)
def test_what_a_type_cannot_say_of_a_model_is_checked(tmp_path, text, key):
    kernels = write_tree(tmp_path, hardware("base"), {"base/a/MODEL.toml": text})
    with pytest.raises(RecordError) as refused:
        read_models(read_sets(kernels)["base"], kernels)
    (fault,) = map(str, refused.value.faults)
    assert f"`{key}`" in fault
    assert fault.startswith("kernels/base/a/MODEL.toml:")
