"""Where a constant's name may stand, and where it is a name like any other."""

import json
from typing import Any

import pytest

from bedstone.spec.codec import parse_value
from bedstone.spec.constants import expand
from bedstone.spec.fault import ParseError
from bedstone.spec.manifest import F32, Buffer, ExprArg, KernelLaunch, Mul
from conformance_cases import accepted_text, patched

CONSTANTS = {"N": 16, "HALF": 0.5, "LESS": -3}


def changed(base: str, **changes: Any) -> dict[str, Any]:
    """The accepted manifest with `CONSTANTS` and the values at some pointers replaced."""
    mutation = [{"op": "replace", "path": path, "value": value} for path, value in changes.items()]
    document = patched(json.loads(accepted_text(base)), mutation)
    return document | {"constants": CONSTANTS}


def test_a_dimension_an_operand_and_a_literal() -> None:
    grid = {"/ops/project/impl/launches/0/grid/0": {"mul": ["n", "N"]}}
    manifest = parse_value(changed("02_impl", **{"/buffers/src/shape/0": "N"}, **grid))
    assert manifest.buffers["src"].shape[0] == 16
    launch = manifest.ops["project"].impl.launches[0]
    assert isinstance(launch, KernelLaunch)
    assert launch.grid[0] == Mul("n", 16)


def test_an_integer_serves_a_float_literal_and_an_expression() -> None:
    args = {"/programs/go/calls/0/args/7": {"f32": "N"}}
    manifest = parse_value(changed("10_packs", **args))
    assert manifest.programs["go"].calls[0].args[7] == F32(16.0)
    value = expand(changed("10_packs", **{"/programs/go/calls/0/args/7": {"expr": "N"}}))
    assert value["programs"]["go"]["calls"][0]["args"][7] == {"expr": 16}
    assert ExprArg(16) in parse_value(value).programs["go"].calls[0].args


def test_names_stay_names() -> None:
    document = changed("02_impl") | {"model": "N"}
    document["buffers"]["N"] = document["buffers"].pop("w")
    expanded = expand(document)
    assert expanded["model"] == "N"
    assert isinstance(parse_value(expanded | {"constants": {}}).buffers["N"], Buffer)
    assert "constants" not in expanded


def test_the_input_is_left_as_it_was() -> None:
    document = changed("01_minimal", **{"/buffers/src/shape/0": "N"})
    before = json.dumps(document)
    expand(document)
    assert json.dumps(document) == before


def test_a_var_where_only_a_number_may_stand_is_an_undefined_constant() -> None:
    document = changed("02_impl", **{"/ops/project/impl/launches/0/grid/0": {"mul": [2, "n"]}})
    with pytest.raises(ParseError, match="undefined constant `n`") as caught:
        parse_value(document)
    assert caught.value.fault.path == "/ops/project/impl/launches/0/grid/0/mul/1"
    assert caught.value.fault.objects == ("constant n",)


def test_the_first_undefined_name_in_key_order_is_told() -> None:
    places = {"/vars/n/max": "Q1", "/buffers/w/bind/1/rows": [0, "Q2"]}
    with pytest.raises(ParseError, match="`Q2`"):
        parse_value(changed("02_impl", **places))


def test_a_long_array_is_walked_to_its_end() -> None:
    shape = [1] * 1000 + ["N"]
    document = changed("01_minimal", **{"/buffers/src/shape": shape})
    assert expand(document)["buffers"]["src"]["shape"] == [1] * 1000 + [16]


def test_beyond_the_operands_of_an_operator_nothing_is_a_number() -> None:
    document = changed("02_impl", **{"/ops/project/impl/launches/0/grid/0": {"mul": [2, 2, "N"]}})
    launch = expand(document)["ops"]["project"]["impl"]["launches"][0]
    assert launch["grid"][0] == {"mul": [2, 2, "N"]}
