"""The codec as callers meet it: faults with paths, canonical text, round trips, speed."""

import json
import pickle
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from bedstone.errors import ManifestError
from bedstone.spec.codec import parse, parse_value, serialize
from bedstone.spec.fault import Fault, ParseError
from bedstone.spec.manifest import (
    F32,
    Add,
    Buffer,
    BufferParam,
    Chat,
    Clamp,
    Domain,
    ExternLaunch,
    Manifest,
    State,
    Topology,
    Var,
)
from conformance_cases import accepted_text, patched
from large_manifest import large_manifest
from manifest_strategies import manifests


def changed(base: str, path: str, value: Any) -> dict[str, Any]:
    """The accepted manifest with the value at a pointer set."""
    change = "replace" if path.rpartition("/")[2].isdigit() else "add"
    document = json.loads(accepted_text(base))
    return patched(document, [{"op": change, "path": path, "value": value}])


def fault_of(document: object) -> Fault:
    with pytest.raises(ParseError) as caught:
        parse_value(document)
    return caught.value.fault


EMPTY = Manifest(model="m", buffers={}, modules={}, ops={}, programs={})
GRID = "/ops/project/impl/launches/0/grid/0"


# --- faults ----------------------------------------------------------------------------------


def test_a_fault_names_path_object_expected_and_found() -> None:
    fault = fault_of(changed("01_minimal", "/ops/twice/impl/launches/0/grid/1", -1))
    assert fault == Fault(
        "P6",
        "/ops/twice/impl/launches/0/grid/1",
        ("op twice",),
        "expected an integer from 0 to 18446744073709551615, found the number -1",
    )


@pytest.mark.parametrize(
    ("base", "path", "value", "rule", "at"),
    [
        ("02_impl", GRID, {"mul": ["n", 2], "zz": 1}, "P4", GRID),
        ("02_impl", GRID, {"mul": ["n", 2], "add": ["n", 2]}, "P9", GRID),
        ("02_impl", GRID, {}, "P9", GRID),
        ("02_impl", GRID, {"clamp": ["n", 0]}, "P6", f"{GRID}/clamp"),
        ("02_impl", GRID, True, "P9", GRID),
        ("02_impl", GRID, None, "P10", GRID),
        ("01_minimal", "/buffers/src/kind", {"input": None}, "P11", "/buffers/src/kind"),
        ("01_minimal", "/buffers/src", ["f32", [16], "input"], "P11", "/buffers/src"),
        ("10_packs", "/programs/go/calls/0/args/7/f32", 3.5e38, "P6", None),
        ("10_packs", "/programs/go/calls/0/args/7/f32", float("nan"), "P6", None),
        ("10_packs", "/programs/go/calls/0/args/7/f32", 10**400, "P6", None),
        ("03_domains", "/buffers/cu/domain/min", float("inf"), "P6", None),
        ("07_peers", "/topology/groups/tp", 0.5, "P6", None),
        ("01_minimal", "/chat", {"tool_parser": 3}, "P6", "/chat/tool_parser"),
    ],
)
def test_refused(base: str, path: str, value: Any, rule: str, at: str | None) -> None:
    fault = fault_of(changed(base, path, value))
    assert (fault.rule, fault.path) == (rule, at or path)


def test_a_group_of_the_topology_is_an_object() -> None:
    assert fault_of(changed("07_peers", "/topology/groups/tp", 0.5)).objects == ("group tp",)


def test_a_path_escapes_what_a_pointer_must() -> None:
    fault = fault_of(changed("01_minimal", "/vars", {"a/b~c": {"max": "x"}}))
    assert fault.path == "/vars/a~1b~0c/max"
    assert fault.objects == ("var a/b~c",)


def test_an_error_survives_a_process_boundary() -> None:
    error = ParseError(Fault("P4", "/vars", ("var n",), "text"))
    assert pickle.loads(pickle.dumps(error)).fault == error.fault  # noqa: S301 - our own bytes


def test_hostile_names_make_short_messages() -> None:
    long = "x" * 10**6
    for path, value in [
        ("/zz", {long: 1}),
        ("/buffers/src", {long: 1}),
        ("/buffers/src/kind", long),
        ("/buffers/src/shape/0", {long: long}),
        ("/ops/twice/params/0", long),
        ("/programs/go/calls/0/args/0", {long: 1, "buf": "src"}),
        ("/constants", {long: long}),
    ]:
        assert len(fault_of(changed("01_minimal", path, value)).message) < 500


@pytest.mark.slow
def test_a_million_unknown_fields_are_refused_soon() -> None:
    text = json.dumps({f"k{i}": 0 for i in range(10**6)})
    start = time.process_time()
    with pytest.raises(ParseError, match="P4"):
        parse(text)
    assert time.process_time() - start < 5


def test_expressions_nest_as_deep_as_text_may() -> None:
    expr: Any = "n"
    for _ in range(60):
        expr = {"add": [expr, 1]}
    manifest = parse_value(changed("02_impl", GRID, expr))
    assert parse(serialize(manifest)) == manifest
    assert fault_of(changed("02_impl", GRID, {"add": [expr, 1]})).rule == "P1"


# --- what newer schemas and lax spellings give -------------------------------------------------


def test_what_is_newer_than_the_reference_is_read() -> None:
    document = changed("02_impl", GRID, {"clamp": ["n", 4, 8]}) | {"chat": {"tool_parser": "x"}}
    manifest = parse_value(document)
    assert manifest.chat == Chat("x")
    assert Clamp("n", 4, 8) in manifest.ops["project"].impl.launches[0].grid


def test_an_integer_bound_above_i64_is_a_double() -> None:
    manifest = parse(json.dumps(changed("03_domains", "/buffers/cu/domain/max", 2**63)))
    domain = manifest.buffers["cu"].domain
    assert domain is not None
    assert type(domain.max) is float


def test_a_literal_is_rounded_to_float32() -> None:
    manifest = parse_value(changed("10_packs", "/programs/go/calls/0/args/7/f32", 0.1))
    assert manifest.programs["go"].calls[0].args[7] == F32(0.10000000149011612)


def test_a_launch_without_geometry_is_extern() -> None:
    launch = {"entry": "extern:x", "params": ["  in   buffer<f32> "]}
    manifest = parse_value(changed("01_minimal", "/ops/twice/impl/launches/0", launch))
    read = manifest.ops["twice"].impl.launches[0]
    assert read == ExternLaunch("extern:x", params=(BufferParam("in", "f32"),))


def test_tables_are_in_name_order() -> None:
    document = changed("01_minimal", "/vars", {n: {"max": 1} for n in ("é", "b", "a.9", "B")})
    assert list(parse_value(document).vars) == ["B", "a.9", "b", "é"]


# --- canonical text ----------------------------------------------------------------------------


def test_the_poorest_manifest() -> None:
    lines = [
        "{",
        '  "schema_version": 7,',
        '  "model": "m",',
        '  "buffers": {},',
        '  "modules": {},',
        '  "ops": {},',
        '  "programs": {}',
        "}",
    ]
    assert serialize(EMPTY) == "\n".join(lines)


def test_names_are_in_byte_order_and_escaped_only_where_json_must() -> None:
    names = ["é", "b", 'q"', "a.9", "B", "a.10", "\x7f", "\x01\n"]
    manifest = Manifest(
        "m", buffers={}, modules={}, ops={}, programs={}, vars={n: Var(1) for n in names}
    )
    keys = [line.split(": ")[0].strip() for line in serialize(manifest).splitlines()]
    assert keys[4:-7:3] == [
        '"\\u0001\\n"', '"B"', '"a.10"', '"a.9"', '"b"', '"q\\""', '"\x7f"', '"é"',
    ]  # fmt: skip


def test_defaults_are_left_out_and_empty_objects_stay() -> None:
    manifest = Manifest(
        model="m",
        topology=Topology({}),
        states={"s": State()},
        buffers={"b": Buffer("f32", (), "input", domain=Domain(min=-0.0, max=Add("n", 1)))},
        modules={},
        ops={},
        programs={},
    )
    value = json.loads(serialize(manifest))
    assert value["topology"] == {"groups": {}}
    assert value["states"] == {"s": {}}
    assert value["buffers"]["b"] == {
        "dtype": "f32", "shape": [], "kind": "input",
        "domain": {"min": -0.0, "max": {"add": ["n", 1]}},
    }  # fmt: skip
    assert '"min": -0.0' in serialize(manifest)


def test_an_infinity_is_not_written() -> None:
    infinite = Domain(max=float("inf"))
    buffers = {"b": Buffer("f32", (), "input", domain=infinite)}
    with pytest.raises(ManifestError, match="finite"):
        serialize(Manifest("m", buffers=buffers, modules={}, ops={}, programs={}))


@pytest.mark.slow
@settings(max_examples=150, derandomize=True, suppress_health_check=list(HealthCheck))
@given(manifests())
def test_what_is_serialized_parses_to_the_same(manifest: Manifest) -> None:
    text = serialize(manifest)
    assert parse(text) == manifest
    assert serialize(parse(text.encode())) == text


# --- size --------------------------------------------------------------------------------------


def test_a_large_manifest_parses_soon() -> None:
    text = json.dumps(large_manifest())
    times = []
    for _ in range(3):
        start = time.process_time()
        manifest = parse(text)
        times.append(time.process_time() - start)
    assert len(manifest.programs["decode"].calls) == 2511
    assert min(times) < 0.8, f"best of three: {min(times):.2f} s"
    assert parse(serialize(manifest)) == manifest
