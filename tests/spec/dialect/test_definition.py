import json
from pathlib import Path

import pytest

from bedstone.errors import DefinitionError
from bedstone.spec.definition import ConstAxis, ExprAxis, VarAxis
from bedstone.spec.dialect.document import parse_text
from bedstone.spec.dialect.emit_definition import emit_definition
from bedstone.spec.dialect.parse_definition import parse_definition
from bedstone.spec.identity import definition_identity
from definitions import TENSOR, definition, definition_value

PAGE = (Path(__file__).parent / "page_examples.txt").read_text().splitlines()


def errors(**changes):
    reading = parse_definition(definition_value(**changes))
    return [str(finding) for finding in reading.findings if finding.severity == "error"]


def warnings(**changes):
    reading = parse_definition(definition_value(**changes))
    return [str(finding) for finding in reading.findings if finding.severity == "warning"]


def test_a_definition_is_read_whole_and_written_back_the_same():
    value = definition_value(
        tags=["fused"],
        description="d",
        constraints=["n > 0"],
        axes={"n": {"type": "var", "description": "rows", "parent": "m"}},
        owner={"team": 7},
    )
    reading = parse_definition(value)
    assert (reading.dialect, reading.findings) == ("fib", ())
    assert emit_definition(reading.value, "fib").value == value


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "/name: expected a string that is not empty"),
        ({"axes": []}, "/axes: expected an object, found an array of 0"),
        ({"axes": {"n": {"type": "const", "value": "4"}}}, "/axes/n/value: expected an integer"),
        ({"axes": {"n": {"type": "const", "value": -1}}}, "/axes/n/value: expected an integer"),
        ({"axes": {"n": {"type": "const", "value": True}}}, "/axes/n/value: expected an integer"),
        ({"axes": {"n": {"type": "size"}}}, '/axes/n/type: expected one of `const`, `var`, `expr`'),
        ({"inputs": {"x": {"dtype": "float32"}}}, "/inputs/x: expected `shape`"),
        ({"inputs": {"x": {"shape": [4], "dtype": "int8"}}}, "/inputs/x/shape/0: expected"),
        ({"inputs": {"x": {"shape": "n", "dtype": "int8"}}}, "/inputs/x/shape: expected an array"),
        ({"inputs": {"x": {"shape": [], "dtype": "f32"}}}, "/inputs/x/dtype: `f32` is no element"),
        ({"inputs": {"x": {"shape": ["m"], "dtype": "int8"}}}, "refers to axis `m`, which is not"),
        ({"outputs": {"y": {"shape": ["m"], "dtype": "int8"}},
          "axes": {"n": {"type": "var"}, "m": {"type": "var"}}}, "/axes/m: no input has this axis"),
        ({"reference": "def run(x:"}, "/reference: expected Python code"),
        ({"reference": "async def run(x): ..."}, "/reference: expected a top-level function `run`"),
        ({"reference": "run = lambda x: x"}, "/reference: expected a top-level function `run`"),
        ({"tags": "fused"}, "/tags: expected an array of strings"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_where_it_is(changes, message):
    found = errors(**changes)
    assert len(found) == 1
    assert message in found[0]


def test_every_error_is_found_at_once():
    assert len(errors(name=..., op_type=3, inputs=..., reference="def run(")) == 4


def test_an_axis_of_an_output_may_be_told_by_a_constraint():
    outputs = {"y": {"shape": ["m"], "dtype": "int8"}}
    axes = {"n": {"type": "var"}, "m": {"type": "var"}}
    assert errors(outputs=outputs, axes=axes, constraints=["m == n + 1"]) == []


def test_values_without_a_discriminator_are_read_and_written_with_one():
    reading = parse_definition(definition_value(axes={"n": {}, "k": {"value": 4}}))
    assert reading.usable
    assert reading.value.axes == {"n": VarAxis(), "k": ConstAxis(4)}
    written = emit_definition(reading.value, "fib").value
    assert written["axes"] == {"n": {"type": "var"}, "k": {"type": "const", "value": 4}}


def test_former_names_are_read_as_todays():
    tensor = {"shape": ["n"], "dtype": "float8_e4m3"}
    assert warnings(op_type=..., type="norm", inputs={"x": tensor}) == [
        "/type: `type` was renamed: read as `op_type`",
        "/inputs/x/dtype: `float8_e4m3` was renamed `float8_e4m3fn`",
    ]
    assert definition(op_type=..., type="norm").op_type == "norm"


def test_prose_among_constraints_is_kept_where_dumps_have_it_and_refused_elsewhere():
    prose = {"constraints": ["pages must not overlap"]}
    message = "/constraints/0: expected an expression, found `pages must not overlap`"
    assert [text.startswith(message) for text in errors(**prose)] == [True]
    assert [text.startswith(message) for text in warnings(**prose, init="")] == [True]
    dump = parse_definition(definition_value(**prose, init="")).value
    assert [loss.path for loss in emit_definition(dump, "fib").losses] == ["/constraints/0"]


@pytest.mark.parametrize("reference", ["...", "", ...])
def test_a_draft_is_listed_and_cannot_be_run(reference):
    reading = parse_definition(definition_value(reference=reference))
    assert reading.usable
    assert reading.value.entry is None


def test_f16_a_field_left_out_is_the_same_as_null_and_empty():
    plain = definition()
    empty = definition(tags=[], constraints=[], description=None)
    null = definition(tags=None, constraints=None, description=None)
    assert plain == empty == null
    assert len({definition_identity(each) for each in (plain, empty, null)}) == 1
    assert emit_definition(null, "fib").value == definition_value()


def test_f15_a_scalar_and_a_0d_tensor_stay_what_they_are():
    inputs = {
        "x": TENSOR,
        "eps": {"shape": None, "dtype": "float32"},
        "k": {"shape": None, "dtype": "int32"},
    }
    outputs = {
        "total": {"shape": [], "dtype": "float32"},
        "count": {"shape": None, "dtype": "int32"},
    }
    read = definition(inputs=inputs, outputs=outputs)
    assert (read.outputs["total"].shape, read.outputs["count"].shape) == ((), None)
    written = emit_definition(read, "fib").value
    assert (written["inputs"], written["outputs"]) == (inputs, outputs)


# --- the Definition page -----------------------------------------------------------------------


def repaired(line):
    parsed = parse_text(line, mend=True)
    return parsed.value, [(r.line, r.column, r.message) for r in parsed.repairs]


def test_one_example_of_the_page_is_json_and_every_other_is_refused_with_its_place():
    loaded = []
    for line in PAGE:
        try:
            loaded.append(parse_text(line).value["name"])
        except DefinitionError as error:
            assert "line 1 column" in str(error)  # noqa: PT017
    assert loaded == ["gemm_n_4096_k_4096"]


@pytest.mark.parametrize("line", PAGE[3:], ids=lambda line: line.split('"')[3])
def test_every_full_example_of_the_page_loads_with_repairs(line):
    value, _ = repaired(line)
    reading = parse_definition(value)
    assert reading.usable
    # only the first and the fifth have a reference; the others say "..."
    runs = value["name"] in ("gemm_n_4096_k_4096", "rmsnorm_d4096")
    assert (reading.value.entry == "run") is runs
    assert reading.value.op_type == value.get("op_type", "norm")


def test_each_repair_is_listed_where_it_was_made():
    comma_lost, comma_left = "a missing comma was added", "a comma before `}` was removed"
    messages = [[message for _, _, message in repaired(line)[1]] for line in PAGE[3:]]
    assert messages == [
        [],
        [comma_lost],
        [comma_lost, comma_left],
        [comma_lost],
        [comma_left],
        [comma_lost, comma_left],
    ]
    text = '{\n  "tags": ["a"]\n  "n": {"type": "var", },\n}'
    assert repaired(text) == (
        {"tags": ["a"], "n": {"type": "var"}},
        [(2, 16, comma_lost), (3, 22, comma_left), (3, 25, comma_left)],
    )


def test_fragments_of_the_page_load_with_repairs():
    assert repaired(PAGE[1])[0] == {"sequence_length": {"type": "var"}}
    inputs = repaired(PAGE[2])[0]["inputs"]
    assert inputs["temperature"]["shape"] is None


def test_what_is_no_small_fault_stays_refused():
    for text in ('{"a": 1', '{"a" 1}', "{a: 1}", '{"a": 1}}', "", '{"a": 1, "a": 2}', "["):
        with pytest.raises(DefinitionError):
            parse_text(text, mend=True)


def test_a_string_that_looks_like_a_fault_is_left_alone():
    text = json.dumps({"reference": 'x = [1, 2, ]\n"a" "b"\n'})
    assert repaired(text) == (json.loads(text), [])


# --- the other dialects ------------------------------------------------------------------------

DUMP = {
    "name": "rope_inplace_h32_d128",
    "definition": "rope_inplace",
    "op_type": "rope",
    "tags": ["fi_api:flashinfer.rope.apply_rope_inplace"],
    "axes": {
        "nnz": {"type": "var"},
        "heads": {"type": "const", "value": 32},
        "page_size": {"type": "const"},
    },
    "inputs": {
        "q": {"shape": ["nnz", "heads", "D_div_2"], "dtype": "bfloat16"},
        "bias": {"shape": ["heads"], "dtype": "unknown", "optional": True},
        "cache": {"shape": ["page_size"], "dtype": "float32"},
    },
    "outputs": {"q": {"shape": ["nnz", "heads", "D_div_2"], "dtype": "bfloat16"}},
    "reference": "def _half(x):\n    return x / 2\n\n\n"
    "@torch.no_grad()\ndef _rope_reference(q, bias=None, cache=None):\n    return _half(q)\n",
}


def test_a_dump_of_flashinfer_is_read_and_every_liberty_told():
    reading = parse_definition(DUMP)
    assert (reading.dialect, reading.usable) == ("flashinfer", True)
    assert reading.value.entry == "_rope_reference"
    assert reading.value.in_place == {"q": "q"}
    assert reading.value.inputs["bias"].optional
    assert set(reading.value.var_axes) == {"nnz", "page_size", "D_div_2"}
    assert [str(finding) for finding in reading.findings] == [
        "/axes/page_size: a const axis without `value`: read as `var`",
        "/inputs/bias/dtype: `unknown` is not an element type that can be made",
        "/inputs/q/shape: axis `D_div_2` is not declared: read as `var`",
    ]
    assert reading.value.extra == {"definition": "rope_inplace"}


def test_a_dump_becomes_a_definition_that_flashinfer_bench_reads():
    read = parse_definition({**DUMP, "inputs": {**DUMP["inputs"], "bias": TENSOR | {"shape": []}}})
    emission = emit_definition(read.value, "fib")
    again = parse_definition(emission.value)
    assert (again.usable, again.value.entry, again.value.in_place) == (True, "run", {})
    assert list(again.value.outputs) == ["q_out"]
    losses = [str(loss) for loss in emission.losses]
    assert "/reference: `run` is added, which calls `_rope_reference`" in losses
    assert "/outputs/q: written in place of the input: becomes a separate output `q_out`" in losses
    assert not any(loss.fatal for loss in emission.losses)


SOL = {
    "name": "moe_add_h8",
    "op_type": None,
    "axes": {
        "batch": {"type": "var", "description": None},
        "seq": {"type": "var", "description": None},
        "rows": {"type": "expr", "expression": "tokens // 2", "description": None},
        "tokens": {"type": "expr", "expression": "batch * seq", "description": None},
    },
    "custom_inputs_entrypoint": "get_inputs",
    "hf_id": "a/b",
    "inputs": {"x": {"shape": ["tokens", "1"], "dtype": "float64"},
               "y": {"shape": ["rows", "batch", "seq"], "dtype": "int64"}},
    "outputs": {"z": {"shape": ["tokens"], "dtype": "float32"}},
    "reference": "def get_inputs(axes, device): ...\n\ndef run(x, y):\n    return x.sum(1)\n",
}  # fmt: skip


def test_a_definition_of_sol_execbench_is_read():
    reading = parse_definition(SOL)
    assert (reading.dialect, reading.usable) == ("sol", True)
    assert reading.value.axes["rows"] == ExprAxis("tokens // 2")
    assert reading.value.custom_inputs == "get_inputs"
    assert reading.value.extra == {"hf_id": "a/b"}
    written = emit_definition(reading.value, "sol")
    assert written.losses == ()
    assert parse_definition(written.value).value == reading.value


def test_what_flashinfer_bench_cannot_say_is_listed():
    emission = emit_definition(parse_definition(SOL).value, "fib")
    assert emission.value["axes"]["rows"] == {"type": "var"}
    assert emission.value["axes"]["size_1"] == {"type": "const", "value": 1}
    assert "rows == tokens // 2" in emission.value["constraints"]
    fatal = [str(loss) for loss in emission.losses if loss.fatal]
    assert fatal == ["/inputs/x/dtype: element type `float64` is not among its own"]
    with pytest.raises(DefinitionError, match="cannot be said in that dialect"):
        emission.require("moe_add_h8")


def test_identity_is_what_must_be_computed_and_no_prose():
    one = definition_identity(definition())
    assert one == definition_identity(definition(description="d", tags=["t"]))
    assert len(one) == 64
    others = [
        definition(name="other"),
        definition(reference="def run(x):\n    return 3 * x\n"),
        definition(constraints=["n > 1"]),
        definition(inputs={"x": {"shape": ["n"], "dtype": "float16"}}),
        definition(inputs={"x": TENSOR | {"optional": True}}),
        definition(axes={"n": {"type": "const", "value": 16}}),
    ]
    assert len({one, *map(definition_identity, others)}) == 7


def test_the_order_of_inputs_is_part_of_the_identity_and_that_of_axes_is_not():
    code = "def run(a, b):\n    return a + b\n"
    axes = {"n": {"type": "var"}, "m": {"type": "var"}}
    pair = {"a": TENSOR, "b": TENSOR}
    one = definition(inputs=pair, axes=axes, reference=code)
    turned = definition(inputs=dict(reversed(pair.items())), axes=axes, reference=code)
    moved = definition(inputs=pair, axes=dict(reversed(axes.items())), reference=code)
    assert definition_identity(one) != definition_identity(turned)
    assert definition_identity(one) == definition_identity(moved)
