import pytest

from bedstone.errors import DefinitionError
from bedstone.spec.axes import axis_values, bind, bindings, shape_of
from definitions import definition

AXES = {
    "n": {"type": "var"},
    "k": {"type": "const", "value": 4},
    "pairs": {"type": "expr", "expression": "twice // 2"},
    "twice": {"type": "expr", "expression": "n * 2"},
}
INPUTS = {
    "x": {"shape": ["n", "k"], "dtype": "float32"},
    "y": {"shape": ["twice", "1"], "dtype": "float32"},
    "s": {"shape": None, "dtype": "float32"},
    "z": {"shape": ["n"], "dtype": "float32", "optional": True},
}
WHOLE = definition(axes=AXES, inputs=INPUTS, reference="def run(x, y, s, z): ...\n")


def test_sizes_are_read_off_the_inputs():
    assert bind(WHOLE, [(3, 4), (6, 1), None, None]) == {"n": 3, "k": 4, "twice": 6, "pairs": 3}
    assert bindings(WHOLE) == {"n": ("x", 0)}


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(3, 5), (6, 1), None, None], "fixes axis `k` at 4, found 5"),
        ([(3, 4), (7, 1), None, None], "computes axis `twice` at 6, found 7"),
        ([(3, 4), (6, 2), None, None], "fixes axis `1` at 1, found 2"),
        ([(3, 4), (6, 1), None, (5,)], "axis `n` is 3 in input `x` and 5 in input `z`"),
        ([(3,), (6, 1), None, None], "expected 2 axes in input `x`, found 1 axes"),
        ([None, (6, 1), None, None], "expected 2 axes in input `x`, found a scalar"),
        ([(3, 4), (6, 1), (1,), None], "expected a scalar in input `s`, found 1 axes"),
    ],
)
def test_a_size_that_does_not_agree_is_refused(shapes, message):
    with pytest.raises(DefinitionError, match=message):
        bind(WHOLE, shapes)


def test_an_equation_tells_an_axis_that_no_input_has():
    axes = {"n": {"type": "var"}, "m": {"type": "var"}, "rest": {"type": "var"}}
    outputs = {"y": {"shape": ["m"], "dtype": "float32"}}
    of = definition(axes=axes, outputs=outputs, constraints=["n == m + 1", "rest == m * 2"])
    assert bind(of, [(5,)]) == {"n": 5, "m": 4, "rest": 8}
    with pytest.raises(DefinitionError, match="is not told axis `m`"):
        bind(definition(axes=axes, outputs=outputs, constraints=["n == m * 2"]), [(5,)])


def test_given_sizes_must_be_complete_and_agree():
    with pytest.raises(DefinitionError, match="is not told axis `n`"):
        axis_values(WHOLE, {})
    with pytest.raises(DefinitionError, match="fixes axis `k` at 4, found 8"):
        axis_values(WHOLE, {"n": 2, "k": 8})
    assert axis_values(WHOLE, {"n": 2, "k": 4})["pairs"] == 2


@pytest.mark.parametrize(
    ("expression", "message"),
    [("a + 1", "axis `a` is computed from itself"), ("n - 9", "has no value"), ("m", "no value")],
)
def test_a_computed_axis_without_a_value_is_refused(expression, message):
    axes = {"n": {"type": "var"}, "a": {"type": "expr", "expression": expression}}
    with pytest.raises(DefinitionError, match=message):
        axis_values(definition(axes=axes), {"n": 2})


def test_a_scalar_has_no_shape():
    values = axis_values(WHOLE, {"n": 2})
    assert shape_of(WHOLE.inputs["s"], values) is None
    assert shape_of(WHOLE.inputs["y"], values) == (4, 1)
