from dataclasses import replace

import numpy as np
import pytest
import torch

from bedstone.errors import DefinitionError
from bedstone.graph.step import Attention, L2Norm, Norm, Rope, RopeTable
from bedstone.library.definitions import DEFINITIONS
from bedstone.oracle import arithmetic
from bedstone.oracle.draw import Wish, draw
from bedstone.prove.config import Config
from bedstone.prove.problem import Problem, Source
from bedstone.prove.reference import Reference
from bedstone.spec.dialect.emit_definition import emit_definition
from bedstone.spec.dialect.parse_definition import parse_definition
from bedstone.spec.lint import lint
from bedstone.spec.workload import Workload
from proposed_sizes import propose_sizes

CONSTANTS = {
    "Embed": {"vocab": 50, "width": 16},
    "Norm": {"width": 32, "unit": 16, "eps": 1e-6, "plus_one": True},
    "AddNorm": {"width": 32, "eps": 1e-6, "plus_one": False},
    "L2Norm": {"width": 32, "unit": 8, "eps": 1e-6},
    "Linear": {"n": 24, "k": 32},
    "AddedLinear": {"n": 24, "k": 32},
    "CappedLinear": {"n": 24, "k": 32, "cap": 2.0},
    "Glu": {"n": 24, "k": 32, "fn": "gelu_tanh"},
    "Add": {"width": 32},
    "Mul": {"width": 32},
    "Act": {"width": 32, "fn": "softplus"},
    "Scale": {"width": 32, "by": 0.5},
    "Softcap": {"width": 32, "cap": 2.0},
    "ArgMax": {"vocab": 64},
    "Sample": {"vocab": 64},
    "Finish": {},
    "Rope": {"heads": 3, "head_dim": 16, "rot": 8, "kind": "pair", "factor": 1.25},
    "NormRope": {"heads": 3, "head_dim": 16, "rot": 16, "kind": "neox", "factor": 1.0,
                 "eps": 1e-6, "plus_one": True},
    "Attention": {"heads": 4, "groups": 2, "dk": 8, "dv": 6, "scale": 0.3, "window": 3,
                  "softcap": 5.0},
}  # fmt: skip


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_template_exports_a_definition_that_can_be_evaluated(name):
    made = DEFINITIONS[name].at(**CONSTANTS[name])
    reading = parse_definition(emit_definition(made).value)
    assert reading.findings == ()
    assert reading.value == made
    assert [str(f) for f in lint(made) if f.severity != "hint" or f.path == "/reference"] == []
    # no answer without work passes its made inputs
    Problem(made, Workload(propose_sizes(made), {}, "w"), Config(trials=2), Source())


def test_constants_are_part_of_the_name_and_of_the_reference():
    made = DEFINITIONS["Norm"].at(width=64, unit=64, eps=1e-5, plus_one=False)
    assert made.name == "rmsnorm_h64_u64_eps1e-05_poff"
    assert "mean_square + 1e-05" in made.reference
    assert made.const_axes == {"width": 64, "unit": 64}
    assert made.var_axes == ("rows",)


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"n": 4}, "misses `k`"),
        ({"n": 4, "k": 4, "m": 4}, "has no constant `m`"),
        ({"n": 0, "k": 4}, "expected a size for `n`, found 0"),
        ({"n": 4, "k": 4.0}, "expected a size for `k`, found 4.0"),
    ],
)
def test_constants_must_be_complete(constants, message):
    with pytest.raises(DefinitionError, match=message):
        DEFINITIONS["Linear"].at(**constants)


# --- against the interpreter, which was written apart ------------------------------------------


def computed(name, values, **constants):
    made = DEFINITIONS[name].at(**CONSTANTS[name] | constants)
    tensors = {n: torch.from_numpy(np.ascontiguousarray(v)) for n, v in values.items()}
    sizes = {entry: tensors[n].shape[at] for n, spec in made.inputs.items()
             for at, entry in enumerate(spec.shape)}  # fmt: skip
    results = Reference(made).run(tensors, sizes, 0)
    return [result.numpy() for result in results.values()]


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("plus_one", [False, True])
def test_norms_agree(plus_one):
    x, w = normal(5, 32), normal(16)
    op = Norm("x", "w", "y", 1e-6, 16, plus_one)
    close(computed("Norm", {"x": x, "w": w}, plus_one=plus_one)[0], arithmetic.norm(x, w, op))
    whole = Norm("x", "w", "y", 1e-6, 32, plus_one)
    b, gain = normal(5, 32) + 1, normal(32)
    total, y = computed("AddNorm", {"a": x, "b": b, "w": gain}, plus_one=plus_one)
    close(total, x + b)
    close(y, arithmetic.norm(x + b, gain, whole))
    close(computed("L2Norm", {"x": x})[0], arithmetic.l2norm(x, L2Norm("x", "y", 1e-6, 8)))


@pytest.mark.parametrize("fn", ["silu", "gelu_tanh", "sigmoid", "softplus"])
def test_activations_agree(fn):
    x = normal(5, 32) * 4
    close(computed("Act", {"x": x}, fn=fn)[0], arithmetic.ACTIVATIONS[fn](x))
    if fn in ("silu", "gelu_tanh"):
        gate, up = normal(24, 32), normal(24, 32) + 1
        made = arithmetic.ACTIVATIONS[fn](x @ gate.T) * (x @ up.T)
        found = computed("Glu", {"x": x, "gate": gate, "up": up}, fn=fn)[0]
        np.testing.assert_allclose(found, made, rtol=1e-4, atol=1e-3)


def test_softcap_agrees():
    x = normal(5, 32)
    close(computed("Softcap", {"x": x})[0], arithmetic.softcap(x, 2.0))


def test_finished_products_agree():
    x, w, add = normal(5, 32), normal(24, 32), normal(5, 24) + 1
    close(computed("AddedLinear", {"x": x, "w": w, "add": add})[0], x @ w.T + add)
    close(computed("CappedLinear", {"x": x, "w": w})[0], arithmetic.softcap(x @ w.T, 2.0))


@pytest.mark.parametrize("kind", ["neox", "pair"])
def test_rotations_agree(kind):
    x, rows, length = normal(5, 3, 16), 5, 11
    table = RopeTable("rope", tuple(1 / 100 ** (i / 4) for i in range(4)), attention_factor=1.25)
    op = Rope("x", "y", "rope", "pos", 3, 16, 8, kind)
    expected = arithmetic.rope(x.reshape(rows, -1), op, table, length).reshape(x.shape)
    values = {
        "x": x,
        "position": np.arange(length - rows, length, dtype=np.int32),
        "inv_freq": np.array(table.inv_freq, np.float32),
    }
    close(computed("Rope", values, kind=kind)[0], expected)


@pytest.mark.parametrize("window", [0, 3])
@pytest.mark.parametrize("softcap", [0.0, 5.0])
def test_attention_agrees(window, softcap):
    q, k, v = normal(4, 4, 8), normal(9, 2, 8) + 0.5, normal(9, 2, 6) - 0.5
    op = Attention("q", "k", "v", "y", "pos", 4, 2, 8, 6, 0.3, window or None, softcap or None)
    cache = arithmetic.Cache(k.reshape(9, -1), v.reshape(9, -1), 9)
    expected = arithmetic.attention(q.reshape(4, -1), cache, op).reshape(4, 4, 6)
    values = {"q": q, "k": k, "v": v}
    close(computed("Attention", values, window=window, softcap=softcap)[0], expected)


def test_the_lowest_of_equal_values_is_the_arg_max():
    x = np.zeros((3, 64), np.float32)
    x[1, [7, 9]] = 1
    assert computed("ArgMax", {"x": x})[0].tolist() == [0, 7, 0]


def test_draws_agree():
    rng = np.random.default_rng(5)
    x = (rng.standard_normal((60, 64)) * 2).astype(np.float32)
    x[7, 3] = np.inf
    wishes = [
        Wish(*map(float, (t, k, p, m)), seed=int(rng.integers(-(2**62), 2**62)))
        for t, k, p, m in zip(
            rng.choice([0, 0.5, 1, 3], 60), rng.choice([0, -1, 3, 99], 60),
            rng.choice([0, 0.5, 1], 60), rng.choice([0, 0.1], 60), strict=True,
        )
    ]  # fmt: skip
    wishes = [replace(wish, top_k=int(wish.top_k)) for wish in wishes]
    at = rng.integers(0, 999, 60).astype(np.int32)
    kinds = {"temperature": "f4", "top_k": "i4", "top_p": "f4", "min_p": "f4", "seed": "i8"}
    settings = {n: np.array([getattr(w, n) for w in wishes], kind) for n, kind in kinds.items()}
    (found,) = computed("Sample", {"x": x, **settings, "position": at})
    given = zip(x, wishes, at.tolist(), strict=True)
    assert found.tolist() == [draw(row, wish, place + 1)[0] for row, wish, place in given]
    for good, tokens in ((1, [4, 0, 9]), (0, [4, -1, 9])):
        drawn, place = np.array(tokens, np.int32), np.array([5, 6, 7], np.int32)
        token, after = computed("Finish", {"x": drawn, "position": place})
        assert token.tolist() == (drawn * good).tolist()
        assert after.tolist() == (place + good).tolist()
