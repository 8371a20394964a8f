import pytest
import torch
from safetensors.torch import save_file

from bedstone.errors import DefinitionError
from bedstone.prove.inputs.recipe import (
    Distinct,
    Fixed,
    Integers,
    Normal,
    Offsets,
    Probabilities,
    Uniform,
)
from bedstone.prove.inputs.roles import Asked, recipe_for
from bedstone.prove.inputs.workload import Inputs
from bedstone.prove.tensors import as_bytes
from bedstone.spec.axes import axis_values
from bedstone.spec.workload import Random, Scalar, Stored, Workload
from definitions import TENSOR, definition
from proposed_sizes import propose_sizes

PAGED = definition(
    name="paged_h2_d8_ps4",
    op_type="gqa_paged",
    axes={
        "total_q": {"type": "var"},
        "num_pages": {"type": "var"},
        "len_indptr": {"type": "var"},
        "num_kv_indices": {"type": "var"},
        "batch_size": {"type": "var"},
        "page_size": {"type": "const", "value": 4},
        "head_dim": {"type": "const", "value": 8},
    },
    constraints=[
        "len_indptr == batch_size + 1",
        "total_q == qo_indptr[-1].item()",
        "num_kv_indices == kv_indptr[-1].item()",
        "kv_indices.max() < num_pages",
    ],
    inputs={
        "q": {"shape": ["total_q", "head_dim"], "dtype": "bfloat16"},
        "k_cache": {"shape": ["num_pages", "page_size", "head_dim"], "dtype": "bfloat16"},
        "qo_indptr": {"shape": ["len_indptr"], "dtype": "int32"},
        "kv_indptr": {"shape": ["len_indptr"], "dtype": "int32"},
        "kv_indices": {"shape": ["num_kv_indices"], "dtype": "int32"},
        "kv_last_page_len": {"shape": ["batch_size"], "dtype": "int32"},
        "sm_scale": {"shape": None, "dtype": "float32"},
    },
    outputs={"o": {"shape": ["total_q", "head_dim"], "dtype": "bfloat16"}},
    reference="def run(q, k_cache, qo_indptr, kv_indptr, kv_indices, kv_last_page_len, sm_scale):\n"
    "    return q\n",
)


def made(of, sizes, inputs=(), seed=0, number=0, **options):
    return Inputs(of, Workload(sizes, dict(inputs), "w"), **options).trial(seed, number)


def same(one, other):
    return all(torch.equal(as_bytes(one[n]), as_bytes(other[n])) for n in one
               if isinstance(one[n], torch.Tensor))  # fmt: skip


def test_proposed_sizes_satisfy_the_constraints_about_axes():
    sizes = propose_sizes(PAGED)
    assert sizes["len_indptr"] == sizes["batch_size"] + 1
    bounded = definition(
        axes={"n": {"type": "var"}, "m": {"type": "var"}, "topk": {"type": "const", "value": 64}},
        inputs={"x": {"shape": ["n", "m"], "dtype": "int8"}},
        constraints=["topk <= n * 4", "m == n // 1"],
    )
    assert propose_sizes(bounded)["n"] >= 16
    impossible = definition(constraints=["n == n + 1"])
    with pytest.raises(DefinitionError, match="no sizes were found"):
        propose_sizes(impossible)


@pytest.mark.parametrize("number", range(8))
def test_a_paged_batch_hangs_together(number):
    sizes = {"total_q": 9, "num_pages": 16, "len_indptr": 5, "num_kv_indices": 12, "batch_size": 4}
    values = made(PAGED, sizes, number=number)
    queries, keys = values["qo_indptr"].diff(), values["kv_indptr"].diff()
    assert (int(queries.sum()), int(keys.sum())) == (9, 12)
    assert int(values["qo_indptr"][0]) == int(values["kv_indptr"][0]) == 0
    assert int(queries.min()) >= 1
    # every query has a key to look at: its own position at least
    rows = (keys - 1) * 4 + values["kv_last_page_len"]
    assert bool((rows >= queries).all())
    pages = values["kv_indices"]
    assert len(set(pages.tolist())) == 12
    assert 0 <= int(pages.min()) <= int(pages.max()) < 16
    assert values["sm_scale"] == pytest.approx(8**-0.5)


def test_more_sequences_than_rows_leaves_some_empty():
    sizes = {"total_q": 2, "num_pages": 3, "len_indptr": 5, "num_kv_indices": 2, "batch_size": 4}
    values = made(PAGED, sizes)
    assert int(values["qo_indptr"][-1]) == 2
    assert int(values["qo_indptr"].diff().min()) == 0


def test_one_seed_gives_the_same_bits_and_another_does_not():
    sizes = propose_sizes(PAGED)
    assert same(made(PAGED, sizes), made(PAGED, sizes))
    assert not same(made(PAGED, sizes), made(PAGED, sizes, seed=1))
    assert not same(made(PAGED, sizes), made(PAGED, sizes, number=1))
    other = Inputs(PAGED, Workload(sizes, {}, "other")).trial(0, 0)
    assert not same(made(PAGED, sizes), other)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn"])
def test_large_inputs_are_fresh_each_time_too(dtype):
    big = definition(inputs={"x": {"shape": ["n"], "dtype": dtype}})
    inputs = Inputs(big, Workload({"n": 1 << 20}, {}, "w"))
    one, two, again = (inputs.trial(0, number)["x"].float() for number in (0, 1, 0))
    assert torch.equal(one, again)
    # the same sizes, other signs
    assert torch.equal(one.abs(), two.abs())
    assert 0.4 < float((one == two).float().mean()) < 0.6


ROLES = {
    "w": (["k", "k"], "float32", Normal(std=64**-0.5)),
    "weight": (["k"], "bfloat16", Normal(1.0, 0.1)),
    "x": (["n", "k"], "float32", Normal()),
    "a_scale": (["n"], "float32", Uniform(0.5, 1.5)),
    "eps": (None, "float32", Fixed(1e-6)),
    "probs": (["n", "vocab_size"], "float32", Probabilities()),
    "top_k": (["n"], "int32", Integers(1, 33)),
    "top_p": (["n"], "float32", Uniform(0.1, 0.95)),
    "block_table": (["n", "k"], "int32", Distinct(7)),
    "seq_lens": (["n"], "int32", Integers(1, 8)),
    "cu_seqlens": (["n"], "int64", Offsets(2)),
    "ids": (["n"], "int64", Integers(0, 3)),
}


@pytest.mark.parametrize("name", ROLES)
def test_an_input_is_known_by_its_type_shape_and_name(name):
    shape, dtype, recipe = ROLES[name]
    axes = {
        "n": {"type": "var"},
        "k": {"type": "const", "value": 64},
        "vocab_size": {"type": "const", "value": 32},
        "num_pages": {"type": "const", "value": 7},
    }
    spec = {"shape": shape, "dtype": dtype}
    inputs = {"x": {"shape": ["n", "k"], "dtype": "float32"}} | {name: spec}
    of = definition(axes=axes, inputs=inputs, reference=f"def run(x, {name}): ...\n")
    values = axis_values(of, {"n": 3})
    assert recipe_for(Asked(of, name, of.inputs[name], values)) == recipe


def test_a_constraint_that_inputs_break_is_an_error():
    strict = definition(constraints=["x[0] > 1000"])
    with pytest.raises(DefinitionError, match=r"constraint of `double_n`: `x\[0\] > 1000`"):
        made(strict, {"n": 4})
    undecidable = definition(constraints=["x[9] > 1000"])
    made(undecidable, {"n": 4})


STORED = definition(inputs={"x": TENSOR, "i": {"shape": ["n"], "dtype": "int32"}},
                    reference="def run(x, i):\n    return x * i\n")  # fmt: skip


def test_stored_values_are_read_and_checked(tmp_path):
    good, bad = torch.arange(4, dtype=torch.int32), torch.arange(4)
    save_file({"i": good, "wide": bad}, tmp_path / "a.safetensors")

    def stored(key, path="a.safetensors"):
        return made(STORED, {"n": 4}, {"i": Stored(path, key)}, root=tmp_path)

    assert torch.equal(stored("i")["i"], good)
    with pytest.raises(DefinitionError, match="expected `int32`"):
        stored("wide")
    with pytest.raises(DefinitionError, match="`nothing` of"):
        stored("nothing")
    with pytest.raises(DefinitionError, match=r"`b.safetensors` of input `i` is not there"):
        stored("i", "b.safetensors")
    with pytest.raises(DefinitionError, match="leaves the data set's folder"):
        stored("i", "../a.safetensors")
    (tmp_path / "c.safetensors").write_bytes(b"version https://git-lfs")
    with pytest.raises(DefinitionError, match="cannot be read"):
        stored("i", "c.safetensors")


def test_a_missing_file_may_be_stood_in_for(tmp_path):
    values = made(
        STORED, {"n": 4}, {"i": Stored("b.safetensors", "i")}, root=tmp_path, stand_in=True
    )
    assert values["i"].dtype == torch.int32


def test_a_stored_scalar_of_one_element_is_a_number(tmp_path):
    of = definition(inputs={"x": TENSOR, "s": {"shape": None, "dtype": "float32"}},
                    reference="def run(x, s):\n    return x * s\n")  # fmt: skip
    save_file({"s": torch.tensor(0.5)}, tmp_path / "a.safetensors")
    values = made(of, {"n": 4}, {"s": Stored("a.safetensors", "s")}, root=tmp_path)
    assert values["s"] == 0.5
    assert isinstance(values["s"], float)


def test_an_input_that_the_definition_lacks_is_refused():
    with pytest.raises(DefinitionError, match="has input `z`"):
        made(definition(), {"n": 4}, {"z": Random()})


def test_a_number_for_a_tensor_is_refused():
    with pytest.raises(DefinitionError, match="gives a number for input `x`"):
        made(definition(), {"n": 4}, {"x": Scalar(1.0)})


def test_the_definitions_own_function_makes_custom_inputs():
    from bedstone.spec.workload import Custom

    of = definition(
        custom_inputs_entrypoint="make",
        axes={"n": {"type": "var"}, "m": {"type": "expr", "expression": "n * 2"}},
        inputs={"x": {"shape": ["m"], "dtype": "float32"}},
        outputs={"y": {"shape": ["m"], "dtype": "float32"}},
        reference="import torch\n\ndef make(axes, device):\n"
        "    return {'x': torch.randn(axes['m'], device=device) + 100}\n\n"
        "def run(x):\n    return x * 2\n",
    )
    inputs = Inputs(of, Workload({"n": 4}, {"x": Custom()}, "w"))
    values = inputs.trial(0, 0)["x"]
    assert values.shape == (8,)
    assert float(values.min()) > 90
    assert torch.equal(values, inputs.trial(0, 0)["x"])
    assert not torch.equal(values, inputs.trial(0, 1)["x"])


def test_an_element_type_nobody_could_tell_is_refused():
    of = definition(inputs={"x": {"shape": ["n"], "dtype": "unknown"}}, init="")
    with pytest.raises(DefinitionError, match="`unknown` is not an element type"):
        made(of, {"n": 4})


def test_the_definitions_own_function_makes_what_a_workload_says_nothing_of():
    of = definition(
        inputs={
            "x": {"shape": ["n"], "dtype": "float32"},
            "s": {"shape": None, "dtype": "float32"},
        },
        custom_inputs_entrypoint="make",
        reference="import torch\n\ndef run(x, s):\n    return x * s\n\n"
        "def make(axes, device):\n    return {'x': torch.full((axes['n'],), 7.0), 's': 3.0}\n",
    )
    unsaid = Inputs(of, Workload({"n": 4}, {}, "w")).trial(0, 0)
    assert (unsaid["x"].tolist(), unsaid["s"]) == ([7.0] * 4, 3.0)
    stated = Inputs(of, Workload({"n": 4}, {"x": Random(), "s": Scalar(2.0)}, "w")).trial(0, 0)
    assert stated["s"] == 2.0
    assert stated["x"].tolist() != [7.0] * 4
