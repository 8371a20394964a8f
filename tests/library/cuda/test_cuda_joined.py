"""What a kernel that does several launches computes: what these do, one after the other."""

from dataclasses import replace
from math import prod

import pytest
import torch

from bedstone.library.cuda.catalog import cuda_kernels
from bedstone.library.kernel import Join
from bedstone.library.mathematics import define, family_of
from bedstone.prove.inputs.workload import Inputs
from bedstone.prove.reference import Reference
from bedstone.spec.definition import Definition
from bedstone.spec.dialect.emit_definition import emit_definition
from bedstone.spec.dialect.parse_definition import parse_definition
from bedstone.spec.manifest import ScalarParam
from bedstone.spec.workload import Workload

HELD = cuda_kernels("bf16")
JOINS = {join.kernel.entry: join for join in HELD.joins.values()}
every = pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)


LESS = {"tail": {"inner": 512, "width": 256, "ff": 768, "n0": 40, "n1": 9, "n2": 24, "n": 33}}
"""Of kinds whose kernels are for long rows alone: what they compute does not hang on that."""


def sizes_of(join: Join) -> dict[str, int | float]:
    return {**family_of(join.kernel.entry).sizes, **LESS.get(join.kind, {})}


def small(join: Join, **sizes: int | float) -> Definition:
    return define(join.kernel, {**sizes_of(join), **sizes})


def made(of: Definition, rows: int, seed: int = 0) -> tuple[dict, dict]:
    """Inputs, and what the reference says of them."""
    inputs = Inputs(of, Workload(dict.fromkeys(of.var_axes, rows), {}, "w"))
    given = inputs.trial(seed, 0)
    return given, Reference(of).run(given, inputs.values, seed)


@every
def test_its_definition_is_read_back_the_same(join: Join) -> None:
    of = small(join)
    reading = parse_definition(emit_definition(of).value)
    assert reading.findings == ()
    assert reading.value == of
    memory = {p.name for p in join.kernel.params if not isinstance(p.type, ScalarParam)}
    assert memory == of.inputs.keys() | of.outputs.keys()
    assert of.name.startswith(f"{join.kernel.entry}_")


def test_kernels_that_are_launched_otherwise_share_a_definition() -> None:
    for name, join in HELD.joins.items():
        found = define(join.kernel, sizes_of(join), name).reference
        assert found == small(JOINS[join.kernel.entry]).reference


@every
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_computes_what_its_launches_do_one_after_the_other(join: Join, seed: int) -> None:
    sizes = sizes_of(join)
    batch = "rows" in sizes
    of = small(join, **({"stride": 1} if batch else {}))
    sizes |= {"stride": 1} if batch else {}
    given, wanted = made(of, 3, seed)
    found = in_turn(join, sizes | {"rows": 3 if batch else 1}, given)
    for name, expected in wanted.items():
        own = found[name].reshape(expected.shape)
        assert own.dtype == expected.dtype
        near = 1e-2 if expected.dtype == torch.bfloat16 else 1e-4
        torch.testing.assert_close(own, expected, rtol=near, atol=near, equal_nan=True)
        if name in given:
            assert not torch.equal(expected, given[name])


def in_turn(join: Join, sizes: dict, given: dict) -> dict:
    """Every tensor by its name once the Definition of each launch has run."""
    held = dict(given)
    sizes = {**settled(join, sizes), **sizes}
    for one in join.taken:
        numbers = {own: sizes[name] for own, name in one.names.items() if name in sizes}
        places = places_of(sizes)
        of = define(HELD.kernels[one.entry], numbers | places, one.entry)
        inputs = Inputs(of, Workload(dict.fromkeys(of.var_axes, sizes["rows"]), {}, "w"))
        shaped = inputs.trial(0, 0)
        own = {name: held[one.names[name]].reshape(shaped[name].shape) for name in of.inputs}
        for name, value in Reference(of).run(own, inputs.values, 0).items():
            held[one.names[name]] = value
    return held


def places_of(sizes: dict) -> dict[str, int]:
    """How many rows tables have, and rotations."""
    if "page" not in sizes:
        return {"slots": sizes["slots"]}
    capacity = sizes["page"] * sizes["pages_width"]
    return {"slots": capacity * (sizes["rows"] if sizes["stride"] else 1), "capacity": capacity}


def settled(join: Join, sizes: dict) -> dict:
    return {
        name: prod(sizes[each] for each in value) if isinstance(value, tuple) else value
        for name, value in join.settled.items()
    }


def test_a_key_goes_where_its_position_is_looked_for() -> None:
    for seed in range(20):
        of = small(JOINS["attention_turned"], stride=1)
        given, _ = made(of, 5, seed)
        at, page = given["position"], family_of("attention_turned").sizes["page"]
        wanted = [-1 if p < 0 else int(given["pages"][row, p // page]) * page + p % page
                  for row, p in enumerate(at.tolist())]  # fmt: skip
        assert given["slot"].tolist() == wanted
        assert min(wanted) == -1


TURNED = (
    ("placed(table, slot, y1, 0)", "table"),
    ("normed(x1.flatten(0, 1), w1,", "normed(x1.flatten(0, 1), w0,"),
    ("turned(x1, cos", "turned(x0[:, :2], cos"),
    ("in_order(v, own", "in_order(v.flip(0), own"),
    ("enumerate(position.tolist())", "enumerate(position.flip(0).tolist())"),
)
TAIL = (
    ("o = torch.matmul(attended, wo.T)", "o = torch.matmul(attended, wo.T) + x"),
    ("mid = x + o", "mid = x"),
    ("m = normed(mid, w_post,", "m = normed(x, w_post,"),
    ("m = normed(mid, w_post, 256, 1e-06, 1)", "m = normed(mid, w_post, 256, 1e-06, 0)"),
    ("torch.matmul(m, wg.T), 0)", "torch.matmul(m, wg.T), 1)"),
    ("* torch.matmul(m, wu.T)", "* torch.matmul(m, wg.T)"),
    ("sum = mid + d", "sum = x + d"),
    ("xn = normed(sum, w_in,", "xn = normed(sum, w_post,"),
    ("y1 = torch.matmul(xn, w1.T)", "y1 = torch.matmul(m, w1.T)"),
    ("placed(table, slot, y2, 0)", "table"),
)
AMISS = {
    "attention_turned_n": (TURNED, {"stride": 1, "rows": 3}),
    "tail_parts3_q8_0_rows": (TAIL, {"rows": 1}),
}


def telling(given: dict) -> bool:
    """Whether a difference anywhere shows in the results."""
    if "position" not in given:
        return int(given["slot"]) >= 0
    # of one position alone a key has all the weight, whatever the query
    return int(given["position"].max()) > 9


@pytest.mark.parametrize(
    ("entry", "line", "other", "sizes"),
    [(n, *edit, sizes) for n, (edits, sizes) in AMISS.items() for edit in edits],
)
def test_a_reference_with_something_amiss_is_seen(
    entry: str, line: str, other: str, sizes: dict
) -> None:
    join = JOINS[entry]
    of = small(join, **{n: size for n, size in sizes.items() if n != "rows"})
    assert line in of.reference
    amiss = replace(of, reference=of.reference.replace(line, other))
    tries = (made(amiss, sizes["rows"], seed) for seed in range(20))
    given, wrong = next(each for each in tries if telling(each[0]))
    right = in_turn(join, {**sizes_of(join), **sizes}, given)
    near = {"rtol": 1e-2, "atol": 1e-2, "equal_nan": True}
    assert not all(
        torch.allclose(right[name].reshape(value.shape).float(), value.float(), **near)
        for name, value in wrong.items()
    )
