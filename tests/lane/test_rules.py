"""Every rule of the shared table: where it fires, and one graph for each way it must not."""

import pytest

import lane_cases_dense as dense
import lane_cases_heads as heads
import lane_cases_mixture as mixture
import lane_cases_recurrent as recurrent
from bedstone.graph.parse import parse
from bedstone.graph.text import emit
from bedstone.lane.table import TABLE
from bedstone.spec.dtype import FORMATS
from lane_cases import AT, HEADS, Case, attend
from lane_cases_dense import BOTH, GLU, TWO
from lane_graphs import CPU, assert_computes, fired, kinds, lowered, misses

FIRES: dict[str, Case] = dense.FIRES | heads.FIRES | mixture.FIRES | recurrent.FIRES
HOLDS: dict[str, Case] = dense.HOLDS | heads.HOLDS | mixture.HOLDS | recurrent.HOLDS


@pytest.mark.parametrize("case", FIRES.values(), ids=FIRES.keys())
@pytest.mark.parametrize("numerics", ["precise", "quantized"])
def test_a_rule_fires_once_and_the_step_is_the_same_bit_for_bit(case: Case, numerics: str) -> None:
    schedule = lowered(case.graph, numerics, **case.options)
    assert fired(schedule)[case.rule] == 1
    assert not misses(schedule, case.rule)
    assert_computes(schedule, case.graph, numerics)


@pytest.mark.parametrize("matrix", sorted(FORMATS.keys() - {"q8_0", "q4_k", "q6_k"}))
@pytest.mark.parametrize("case", FIRES.values(), ids=FIRES.keys())
def test_a_rule_fires_whatever_its_matrices_are_held_in(case: Case, matrix: str) -> None:
    """But in blocks of 256 values, of which these rows have none."""
    graph = parse(emit(case.graph).replace("q8_0", matrix))
    schedule = lowered(graph, "quantized", **case.options)
    assert fired(schedule)[case.rule] == 1
    assert_computes(schedule, graph, "quantized")


@pytest.mark.parametrize("case", HOLDS.values(), ids=HOLDS.keys())
def test_a_rule_that_must_not_fire_says_why(case: Case) -> None:
    schedule = lowered(case.graph, case.numerics, **case.options)
    assert not fired(schedule)[case.rule]
    assert {miss.reason for miss in misses(schedule, case.rule)} == {case.reason}
    assert_computes(schedule, case.graph, case.numerics)


@pytest.mark.parametrize("case", FIRES.values(), ids=FIRES.keys())
def test_a_rule_held_back_is_a_miss_and_changes_no_bit(case: Case) -> None:
    held = {*case.options.get("held", ()), case.rule}
    schedule = lowered(case.graph, held=tuple(held))
    assert not fired(schedule)[case.rule]
    assert {miss.reason for miss in misses(schedule, case.rule)} == {"held"}
    assert_computes(schedule, case.graph)


def test_every_rule_has_a_graph_it_fires_on_and_one_for_each_condition() -> None:
    assert {case.rule for case in FIRES.values()} == {rule.name for rule in TABLE}
    for rule in TABLE:
        tried = {case.reason for case in HOLDS.values() if case.rule == rule.name}
        assert tried == {condition.reason for condition in rule.legal} | {"shim"}


def test_a_miss_names_the_last_op_of_the_match_and_what_is_wrong() -> None:
    schedule = lowered(HOLDS["glu same_x"].graph)
    (miss,) = misses(schedule, "glu")
    assert schedule.misses == (miss,)
    assert miss.op == 5
    assert miss.why == "the products read `p` and `x`"


SHARED = {
    "its gate": (("w=SG", "w=SQ"), "the shared network's gate is q8_0"),
    "inward": (("w=HK", "w=H4"), "the matrices are q4_0 and q8_0"),
    "outward": (("w=HV", "w=V4"), "the matrices are q4_0 and q8_0"),
}


@pytest.mark.parametrize(("change", "why"), SHARED.values(), ids=SHARED.keys())
@pytest.mark.parametrize("numerics", ["precise", "quantized"])
def test_a_shared_network_in_another_format_stays_apart_and_says_what_is_unlike(
    change: tuple[str, str], why: str, numerics: str
) -> None:
    case = Case("shared_expert", mixture.WEIGHED.replace(*change))
    schedule = lowered(case.graph, numerics)
    (miss,) = misses(schedule, "shared_expert")
    assert (miss.reason, miss.why) == ("format", why)
    assert fired(schedule)["expert_sum"] == 1
    assert_computes(schedule, case.graph, numerics)


def test_another_activation_is_no_glu_and_no_miss() -> None:
    case = Case("glu", GLU.replace("silu", "sigmoid") + "y = mul(a=s, b=u)")
    schedule = lowered(case.graph)
    assert not misses(schedule, "glu")
    assert kinds(schedule)["sigmoid"] == 1


def test_a_constant_added_is_no_residual() -> None:
    case = Case("residual_norm", "s = add(a=x, b=b)\ny = norm(x=s, w=w, eps=1e-05, unit=64)")
    schedule = lowered(case.graph)
    assert not misses(schedule, "residual_norm")
    assert kinds(schedule)["norm"] == 1


def test_rotations_of_another_kind_are_no_siblings() -> None:
    body = BOTH.replace(
        f"k = rope(x=x, {HEADS})", f"k = rope(x=x, {HEADS})".replace("neox", "pair")
    )
    schedule = lowered(Case("rope_parts", body + attend(query="r")).graph)
    assert not fired(schedule)["rope_parts"]
    assert not misses(schedule, "rope_parts")


def test_the_part_that_writes_table_rows_comes_last() -> None:
    body = f"v = linear(x=x, w=W0)\nV@1 = set(table=V, x=v, {AT})\nq = linear(x=x, w=W1)\n"
    case = Case("gemv_parts", f"{body}K@1 = set(table=K, x=x, {AT})\n" + attend(query="q"))
    schedule = lowered(case.graph)
    assert fired(schedule) == {"linear_set": 1, "gemv_parts": 1}
    assert_computes(schedule, case.graph)


def test_what_the_shim_refuses_together_is_taken_apart() -> None:
    body = TWO + "k = linear(x=x, w=Q4)\nz = mul(a=l, b=m)\ny = mul(a=z, b=k)"
    schedule = lowered(Case("gemv_parts", body).graph, shim=CPU)
    assert kinds(schedule)["gemv_parts"] == 1
    assert kinds(schedule)["gemv"] == 2
    assert [miss.reason for miss in misses(schedule, "gemv_parts")] == ["shim"]
