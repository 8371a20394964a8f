"""What kernels compute: every entry has its mathematics, and its pieces agree with others' code."""

import ast
import re

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

from bedstone.errors import DefinitionError
from bedstone.library.catalog import cpu_kernels
from bedstone.library.cuda.catalog import cuda_kernels
from bedstone.library.mathematics import define, family_of
from bedstone.library.mathematics.pieces import PIECES, pieces_for
from bedstone.oracle import arithmetic
from bedstone.prove.inputs.workload import Inputs
from bedstone.prove.reference import Reference
from bedstone.spec.dialect.emit_definition import emit_definition
from bedstone.spec.dialect.parse_definition import parse_definition
from bedstone.spec.workload import Workload

KERNELS = cpu_kernels().kernels
MAKERS = {"arange", "tensor", "zeros", "ones", "empty", "full", "eye", "linspace"}
"""PyTorch's functions that put what they make on the CPU unless they are told where."""
OWN = {"run", "inputs", "clear_of"}
"""Functions of a reference that are no pieces."""
QUANTIZED = ("q8_0", "q4_0", "q4_1", "q4_k", "q6_k")


def small(entry, **changes):
    family = family_of(entry)
    return define(KERNELS[entry], {**family.sizes, **changes})


def test_every_kernel_has_a_definition_that_is_read_back_the_same():
    names = set()
    for entry in KERNELS:
        made = small(entry)
        reading = parse_definition(emit_definition(made).value)
        assert reading.findings == (), entry
        assert reading.value == made
        names.add(made.name)
    assert len(names) == len(KERNELS)


def test_a_definition_names_every_tensor_of_its_kernel():
    for entry, kernel in KERNELS.items():
        made = small(entry)
        buffers = {
            p.name for p in kernel.params if "buffer" in str(p.type) or "state" in str(p.type)
        }
        pieces = {p.name for p in kernel.params if "bytes" in str(p.type)}
        assert buffers | pieces == made.inputs.keys() | made.outputs.keys(), entry


def test_constants_tell_definitions_apart():
    one, other = small("norm", eps=1e-5), small("norm", eps=1e-6)
    assert one.name != other.name
    assert "1e-05" in one.reference
    assert small("norm", eps=1e-5, unrelated=3).name == one.name


@pytest.mark.parametrize(
    ("entry", "sizes", "message"),
    [
        ("norm", {"width": 64}, "`norm` is not told `unit`"),
        ("attention", {}, "`attention` is not told"),
    ],
)
def test_a_size_that_is_missing_is_named(entry, sizes, message):
    with pytest.raises(DefinitionError, match=message):
        define(KERNELS[entry], sizes)


def test_an_unknown_entry_has_no_mathematics():
    with pytest.raises(DefinitionError, match="nobody says what the kernel `warp` computes"):
        family_of("warp")


def test_the_longest_name_decides():
    assert family_of("add_norm_pre_fq") is family_of("add_norm_pre")
    assert family_of("add_norm_fq") is family_of("add_norm")
    assert family_of("add_norm") is not family_of("add")
    assert family_of("xglu_sg_q_q4_0_fq") is family_of("xglu_sg")


# --- pieces ---------------------------------------------------------------------------------------


def piece(name):
    scope = {"torch": torch}
    exec(pieces_for(f"{name}("), scope)  # noqa: S102  (the text under test)
    return scope[name]


def test_every_piece_is_used_and_a_reference_holds_those_it_needs_only():
    used = set()
    joined = {join.kernel.entry: join.kernel for join in cuda_kernels("bf16").joins.values()}
    every = [(entry, small(entry)) for entry in KERNELS]
    every += [(n, define(kernel, family_of(n).sizes)) for n, kernel in joined.items()]
    for entry, made in every:
        reference = made.reference
        own = set(re.findall(r"^def (\w+)\(", reference, re.MULTILINE)) - OWN
        assert own <= PIECES.keys()
        for name in own:
            assert len(re.findall(rf"\b{name}\(", reference)) > 1, (entry, name)
        used |= own
    assert used == PIECES.keys()


def placeless(text, start):
    """Calls of `MAKERS` without a device in the function `start` and all that it calls."""
    functions = {f.name: f for f in ast.parse(text).body if isinstance(f, ast.FunctionDef)}
    waiting, seen = [start], set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        for call in (c for c in ast.walk(functions[name]) if isinstance(c, ast.Call)):
            if isinstance(call.func, ast.Name):
                waiting += {call.func.id} & functions.keys() - seen
            elif call.func.attr in MAKERS and "device" not in {k.arg for k in call.keywords}:
                yield ast.unparse(call)


def test_what_a_reference_makes_is_where_its_inputs_are():
    assert list(placeless("def f(x):\n    return torch.zeros(2)", "f")) == ["torch.zeros(2)"]
    for entry in KERNELS:
        made = small(entry)
        assert list(placeless(made.reference, "run")) == [], entry
        if made.custom_inputs is not None:
            given = made.reference.rpartition("return {")[2]
            assert given.count(": ") == given.count(".to(device)"), entry


@pytest.mark.parametrize("fmt", QUANTIZED)
def test_a_format_is_decoded_as_by_gguf(fmt):
    of = small(f"embed_{fmt}")
    w = Inputs(of, Workload({"rows": 2}, {}, "w")).trial(0, 0)["w"]
    expected = dequantize(w.numpy(), GGMLQuantizationType[fmt.upper()])
    found = piece(fmt)(w).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    assert 0.01 < np.abs(found).mean() < 1


@pytest.mark.parametrize("name", ["silu", "gelu_tanh", "sigmoid", "softplus"])
def test_activations_agree_with_the_oracle(name):
    x = torch.randn(100, dtype=torch.float64) * 4
    np.testing.assert_allclose(piece(name)(x), arithmetic.ACTIVATIONS[name](x.numpy()), 1e-5, 1e-12)


def test_equal_values_are_chosen_in_order():
    x = torch.tensor([[0.5, 1.0, 1.0, 0.5]])
    assert piece("best")(x, 3).tolist() == [[1, 2, 0]]


@pytest.mark.parametrize("entry", ["route_bf16", "route_q6_k_b", "route_q_q8_0"])
def test_choices_are_clear_by_more_than_rounding_moves_them(entry):
    of = small(entry)
    on = Workload({"rows": 11}, {}, "w")
    inputs = Inputs(of, on)
    for number in range(3):
        given = inputs.trial(0, number)
        scope = {}
        exec(of.reference, scope)  # noqa: S102  (the text under test)
        assert float(scope["clear_of"](*given.values()).min()) > 0.005
        ids = Reference(of).run(given, inputs.values, 0)["ids"]
        assert (ids.sort(1).values.diff(dim=1) > 0).all()


@pytest.mark.parametrize("entry", ["route_q_q4_1", "linear_q_q4_1"])
def test_scales_and_sums_are_of_the_codes_beside_them(entry):
    given = Inputs(small(entry), Workload({"rows": 11}, {}, "w")).trial(0, 0)
    codes = given["xq"].reshape(11, -1, 32).to(torch.int32)
    assert torch.equal(codes.sum(-1), given["xz"])
    assert bool((given["xs"] > 0).all())


def test_how_clear_a_choice_is():
    x = torch.tensor([[8.0, 0.0, 5.0, 3.0], [8.0, 0.0, 4.0, 4.0]], dtype=torch.float64)
    assert piece("clearness")(x, 2, 1, 1, 1).tolist() == [3 / 13, 0]
    # groups that are worth as much are no choice
    assert piece("clearness")(x, 1, 2, 1, 2).tolist() == [0, 0]
    assert piece("clearness")(x, 1, 2, 1, 1).tolist() == [3 / 13, 1 / 3]


def test_a_row_without_a_slot_goes_nowhere():
    table = torch.zeros(3, 4)
    slot, rows = torch.tensor([2, -1]), torch.ones(2, 2)
    assert piece("placed")(table, slot, rows, 1).tolist() == [[0] * 4, [0] * 4, [0, 1, 1, 0]]


def test_halves_round_away_from_zero():
    x = torch.zeros(1, 32)
    x[0, :4] = torch.tensor([127.0, 2.5, -2.5, 0.4])
    codes, scales, sums = piece("quantized")(x)
    assert codes[0, :4].tolist() == [127, 3, -3, 0]
    assert (scales.tolist(), sums.tolist()) == ([[1.0]], [[127.0]])


def test_a_sequence_that_begins_forgets_what_its_line_held():
    of = small("conv", act=0, unit=0)
    sizes = {"rows": 6, "seqs": 2}
    values = Inputs(of, Workload(sizes, {}, "w")).trial(0, 0)
    fresh = values | {"position": torch.arange(6, dtype=torch.int32) % 3}
    other = fresh | {"ring": values["ring"] + 1}
    axes = Inputs(of, Workload(sizes, {}, "w")).values
    one, two = (Reference(of).run(v, axes, 0) for v in (fresh, other))
    assert torch.equal(one["y"], two["y"])
    later = other | {"position": fresh["position"] + 1}
    assert not torch.equal(Reference(of).run(later, axes, 0)["y"], one["y"])
