"""What CUDA kernels compute: codes are bfloat16 numbers, tables hold what they are compiled for."""

import pytest
import torch

from bedstone.library.catalog import cpu_kernels
from bedstone.library.cuda.catalog import cuda_kernels
from bedstone.library.mathematics import define, family_of
from bedstone.prove.inputs.workload import Inputs
from bedstone.prove.reference import Reference
from bedstone.spec.dialect.emit_definition import emit_definition
from bedstone.spec.dialect.parse_definition import parse_definition
from bedstone.spec.dtype import FORMATS
from bedstone.spec.workload import Workload

SETS = (cuda_kernels("f32"), cuda_kernels("bf16"))
sets = pytest.mark.parametrize("held", SETS, ids=lambda held: held.name)


def small(held, entry):
    return define(held.kernels[entry], family_of(entry).sizes, entry)


def values(of, seed=0):
    sizes = family_of(of.name).sizes
    on = Workload({name: sizes[name] for name in of.var_axes}, {}, "w")
    inputs = Inputs(of, on)
    given = inputs.trial(seed, 0)
    return given, Reference(of).run(given, inputs.values, seed)


def sampled():
    """Each Definition once, of entries in one format: sets differ in what they hold."""
    others = {name for name in FORMATS if name != "q4_1"}
    made = [small(held, entry) for held in SETS for entry in held.kernels
            if not others & set(entry.split("_"))]  # fmt: skip
    return {(of.reference, str(of.inputs)): of for of in made}.values()


@sets
def test_every_kernel_has_a_definition_that_is_read_back_the_same(held):
    names = set()
    for entry in held.kernels:
        made = small(held, entry)
        reading = parse_definition(emit_definition(made).value)
        assert reading.findings == (), entry
        assert reading.value == made
        names.add(made.name)
    assert len(names) == len(held.kernels)


@pytest.mark.slow
def test_references_give_the_same_bits_twice():
    every = sampled()
    assert len(every) > 150
    for of in every:
        (_, one), (_, two) = values(of), values(of)
        for name, spec in of.outputs.items():
            assert str(one[name].dtype) == f"torch.{spec.dtype}", (of.name, name)
            assert torch.equal(one[name].nan_to_num(), two[name].nan_to_num()), (of.name, name)


def test_codes_are_what_is_computed_rounded():
    of = small(SETS[0], "norm_fq")
    assert of.outputs["yq"].dtype == "bfloat16"
    assert not {"ys", "yz"} & of.outputs.keys()
    _, found = values(of)
    assert torch.equal(found["y"].bfloat16(), found["yq"])
    read = small(SETS[0], "linear_q_q4_1")
    assert read.inputs["xq"].dtype == "bfloat16"
    assert read.inputs["xq"].shape == ("rows", "k")


def test_tables_hold_what_a_set_is_compiled_for():
    for held, dtype in zip(SETS, ("float32", "bfloat16"), strict=True):
        for entry, names in (("attention", "kv"), ("rope_rows", ("table",)),
                             ("attention_flat_split", ("kt",))):  # fmt: skip
            of = small(held, entry)
            assert {of.inputs[name].dtype for name in names} == {dtype}, entry
        assert small(held, "delta").inputs["state"].dtype == "float32"
    of = small(SETS[1], "set_rows")
    given, found = values(of)
    assert torch.equal(found["table"][given["slot"][0]][:64], given["x"][0].bfloat16())


def test_a_name_tells_what_is_rounded():
    cpu = cpu_kernels().kernels
    plain, rounded = (small(held, "norm") for held in SETS)
    assert plain == rounded == define(cpu["norm"], family_of("norm").sizes)
    names = {small(held, "linear_q_q4_1_rows").name for held in SETS}
    names.add(define(cpu["linear_q_q4_1_rows"], family_of("linear").sizes).name)
    assert len(names) == 3


def test_variants_compute_what_their_entry_does():
    for held in SETS:
        for entry, variants in held.variants.items():
            of = small(held, entry)
            for name, _ in variants:
                assert define(held.kernels[name], family_of(entry).sizes, entry) == of, name
