"""The step interpreter on mixtures, recurrences and latents small enough to work out by hand."""

import numpy as np
import pytest

from bedstone.graph.parse import parse
from bedstone.oracle.step import StepOracle


def ran(body: str, constants: dict[str, object], rows: int = 1, runs: int = 1) -> StepOracle:
    """A chunk step of `rows` rows of the constant `x.w`, run from row 0 on `runs` times."""
    arrays = {name: np.array(values, np.float64) for name, values in constants.items()}
    declared = "".join(
        f"{name} = const(format=f32, shape={a.shape})\n" for name, a in arrays.items()
    )
    text = f"graph(model=m, form=chunk, rows={rows}, params=(pos,), outputs=(next,))\n{declared}"
    text += f"ids = carried(rows={rows})\n{body}\nlast = row(x=x, at=fixed(row=0))\n"
    text += "next = argmax(x=last)\n"
    text = text.replace("x = embed()", "x = embed(ids=ids, table=x.w)")
    oracle = StepOracle(parse(text), arrays)
    for run in range(runs):
        first = run * rows
        oracle.run({"ids": list(range(first, first + rows))}, {"pos": first + rows})
    return oracle


def routed(logits: list[float], score: str, topk: str, renorm: str, **more: object) -> StepOracle:
    body = f"x = embed()\np = score(x=x, fn={score})\nchosen = topk(x=p, {topk})\n"
    body += f"w = renorm(x=p, ids=chosen, {renorm})"
    return ran(body, {"x.w": [logits], **more})


@pytest.mark.parametrize(
    ("k", "normalise", "weights"),
    [
        (2, "false", [0.64391426, 0.23688282]),
        (2, "true", [0.73105858, 0.26894142]),
        (1, "false", [0.64391426]),
    ],
)
def test_c22_scores_are_over_all_experts_and_sum_to_one_only_if_asked(
    k: int, normalise: str, weights: list[float]
) -> None:
    made = routed([2, 1, 0, -1], "softmax", f"k={k}", f"normalise={normalise}").tensors
    np.testing.assert_allclose(made["w"][0], weights, atol=5e-9)
    assert made["chosen"][0].tolist() == list(range(k))


def test_c23_a_bias_chooses_but_does_not_weigh() -> None:
    made = routed(
        [0, -1, -2, -3], "sigmoid", "k=2, bias=b", "normalise=true, factor=2.5", b=[0, 0, 1, 0]
    ).tensors
    assert made["chosen"].tolist() == [[2, 0]]
    np.testing.assert_allclose(made["w"][0], [0.48127568, 2.01872432], atol=5e-9)


def test_c23_a_tiny_score_survives_a_large_bias() -> None:
    made = routed([-17], "sigmoid", "k=1, bias=b", "normalise=false", b=[12]).tensors
    np.testing.assert_allclose(made["w"], [[4.1399375e-08]], rtol=1e-7)


def test_c24_experts_outside_the_best_groups_are_never_chosen() -> None:
    body = "x = embed()\nchosen = topk(x=x, k=2, groups=2, group_k=1, group_best=2)"
    made = ran(body, {"x.w": [[-0.5, -0.6, -0.1, -2.0]]}).tensors
    assert made["chosen"].tolist() == [[0, 1]]


def test_ties_of_experts_and_of_groups_take_the_lower_index() -> None:
    body = "x = embed()\nchosen = topk(x=x, k=3, groups=3, group_k=2, group_best=1)\n"
    body += "most = topk(x=x, k=4)"
    made = ran(body, {"x.w": [[1, 2, 2, 0, 1, 2]]}).tensors
    assert made["chosen"].tolist() == [[1, 2, 0]]
    assert made["most"].tolist() == [[1, 2, 5, 0]]


def test_each_row_reads_the_matrices_of_its_own_experts() -> None:
    body = (
        "x = embed()\nchosen = topk(x=x, k=2)\nw = renorm(x=x, ids=chosen, normalise=false)\n"
        "up = xlinear(x=x, ids=chosen, w=up.w, experts=3)\n"
        "down = xlinear(x=up, ids=chosen, w=down.w, experts=3)\ny = xsum(x=down, w=w)"
    )
    constants = {
        "x.w": [[3, 2, 0], [0, 1, 5]],
        "up.w": [[[1, 0, 0]], [[0, 1, 0]], [[0, 0, 1]]],
        "down.w": [[[1], [10]], [[2], [20]], [[3], [30]]],
    }
    made = ran(body, constants, rows=2).tensors
    assert made["chosen"].tolist() == [[0, 1], [2, 1]]
    assert made["up"].tolist() == [[3, 2], [5, 1]]
    assert made["down"].tolist() == [[3, 30, 4, 40], [15, 150, 2, 20]]
    assert made["y"].tolist() == [[3 * 3 + 2 * 4, 170], [5 * 15 + 1 * 2, 770]]


def test_one_unit_is_weighed_by_one_value() -> None:
    body = "x = embed()\ng = part(x=x, pitch=3, offset=2, width=1, units=1)\ny = xsum(x=x, w=g)"
    assert ran(body, {"x.w": [[1, 2, 10]]}).tensors["y"].tolist() == [[10, 20, 100]]


CONV = """\
ring = table(capacity=2, width=2, zeros=true)
x = embed()
y = conv(x=x, w=taps, ring=ring, version=ring@1)"""
TAPS = [[1, 10, 100], [0, 0, 1]]
ROWS = [[1, 5], [2, 6], [3, 7], [4, 8]]
CONVOLVED = [[100, 5], [210, 6], [321, 7], [432, 8]]


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_a_convolution_sees_the_rows_before_whatever_the_step(rows: int) -> None:
    oracle = ran(CONV, {"x.w": ROWS, "taps": TAPS}, rows=rows, runs=4 // rows)
    assert oracle.tensors["y"].tolist() == CONVOLVED[-rows:]
    assert oracle.tables["ring"].tolist() == [[3, 7], [4, 8]]
    assert oracle.tensors["ring@1"] is oracle.tables["ring"]


DELTA = """\
state = table(capacity=4, width=1, zeros=true)
x = embed()
k = part(x=x, pitch=5, offset=0, width=2, units=1)
v = part(x=x, pitch=5, offset=2, width=2, units=1)
g = scale(x=v, by=0.0)
half = part(x=x, pitch=0, offset=4, width=1, units=1)
beta = concat(a=half, b=half, units=1)
y = delta(q=k, k=k, v=v, g=g, beta=beta, state=state, version=state@1, SIZES)
""".replace("SIZES", "key_heads=1, heads=2, dk=2, dv=1, scale=2.0")


@pytest.mark.parametrize("rows", [1, 2])
def test_the_delta_rule_moves_a_key_towards_its_value(rows: int) -> None:
    """Half of what a key gives short of its value is added to it; both heads share the key."""
    table = [[1, 0, 8, 4, 0.5], [1, 0, 8, 4, 0.5]]
    oracle = ran(DELTA, {"x.w": table}, rows=rows, runs=2 // rows)
    assert oracle.tensors["y"].tolist() == [[8, 4], [12, 6]][-rows:]
    assert oracle.tables["state"].tolist() == [[6], [0], [3], [0]]


def test_a_state_decays_before_it_is_read() -> None:
    body = DELTA.replace("g = scale(x=v, by=0.0)", "g = scale(x=v, by=-0.25)")
    oracle = ran(body, {"x.w": [[1, 0, 8, 4, 0.5]] * 2}, runs=2)
    second = [0.5 * 4 * np.exp(-2) + 4, 0.5 * 2 * np.exp(-1) + 2]
    np.testing.assert_allclose(oracle.tensors["y"][0], np.multiply(second, 2), rtol=1e-15)


def test_a_decay_is_the_log_of_a_share() -> None:
    body = "x = embed()\ng = decay(a=x, a_log=a, dt=d)"
    made = ran(body, {"x.w": [[1, -2]], "a": [0, np.log(3)], "d": [-1, 2]}).tensors
    np.testing.assert_allclose(made["g"], [[-np.log(2), -3 * np.log(2)]], rtol=1e-15)


def test_a_unit_norm_brings_each_head_to_length_one() -> None:
    body = "x = embed()\ny = l2norm(x=x, eps=0.0, unit=2)"
    made = ran(body, {"x.w": [[3, 4, 0, -2]]}).tensors
    np.testing.assert_allclose(made["y"], [[0.6, 0.8, 0, -1]], rtol=1e-15)


def test_windows_and_joins_go_unit_by_unit() -> None:
    body = (
        "x = embed()\na = part(x=x, pitch=3, offset=0, width=2, units=2)\n"
        "b = part(x=x, pitch=3, offset=2, width=1, units=2)\n"
        "ba = concat(a=b, b=a, units=2)\ns = concat(a=b, b=a, units=2, shared=true)"
    )
    made = ran(body, {"x.w": [[1, 2, 3, 4, 5, 6]]}).tensors
    assert made["a"].tolist() == [[1, 2, 4, 5]]
    assert made["b"].tolist() == [[3, 6]]
    assert made["ba"].tolist() == [[3, 1, 2, 6, 4, 5]]
    assert made["s"].tolist() == [[3, 1, 2, 4, 5, 6, 1, 2, 4, 5]]


def test_each_head_has_its_own_matrix_either_way_around() -> None:
    body = (
        "x = embed()\ny = hlinear(x=x, w=m, heads=2)\n"
        "z = hlinear(x=y, w=m, heads=2, transposed=true)"
    )
    made = ran(body, {"x.w": [[1, 2]], "m": [[[1], [10]], [[3], [30]]]}).tensors
    assert made["y"].tolist() == [[1, 10, 6, 60]]
    assert made["z"].tolist() == [[101, 6 * 3 + 60 * 30]]


def test_part_of_a_head_turns() -> None:
    body = (
        "turn = ropetable(inv_freq=(1.0,))\nx = embed()\n"
        "y = rope(x=x, rope=turn, pos=pos, heads=2, head_dim=3, rot=2, kind=neox, offset=1)"
    )
    made = ran(body, {"x.w": [[0] * 6, [7, 1, 0, 8, 0, 1]]}, runs=2).tensors
    sin, cos = np.sin(1), np.cos(1)
    np.testing.assert_allclose(made["y"], [[7, cos, sin, 8, -sin, cos]], rtol=1e-15)


LATENT = """\
kv = table(capacity=4, width=3)
x = embed()
c = part(x=x, pitch=3, offset=0, width=2, units=1)
kp = part(x=x, pitch=3, offset=2, width=1, units=1)
kv@1 = set(table=kv, x=kp, at=atparam(param=pos), column=2)
kv@2 = set(table=kv@1, x=c, at=atparam(param=pos), column=0)
q = concat(a=x, b=x, units=1)
one = attention(q=q, k=kv@2, v=kv@2, pos=pos, heads=2, groups=1, dk=3, dv=2, scale=0.5)
wide = part(x=kv@2, pitch=3, offset=0, width=2, units=1)
tail = part(x=kv@2, pitch=3, offset=2, width=1, units=1)
keys = concat(a=wide, b=tail, units=1, shared=true)
two = attention(q=q, k=keys, v=wide, pos=pos, heads=2, groups=1, dk=3, dv=2, scale=0.5)
"""


def test_values_may_be_the_first_of_a_key_or_made_of_cached_rows() -> None:
    oracle = ran(LATENT, {"x.w": [[1, 2, 3], [0, 1, -1]]}, runs=2)
    weights = np.exp(np.array([0.5 * (2 - 3), 0.5 * (1 + 1)]))
    expected = weights @ np.array([[1, 2], [0, 1]]) / weights.sum()
    np.testing.assert_allclose(oracle.tensors["one"], [[*expected, *expected]], rtol=1e-14)
    np.testing.assert_allclose(oracle.tensors["two"], oracle.tensors["one"], rtol=1e-15)
    assert oracle.tables["kv"][:2].tolist() == [[1, 2, 3], [0, 1, -1]]
    assert np.isnan(oracle.tables["kv"][2:]).all()


NORM = "x = embed()\ny = norm(x=x, w=w, eps={eps}, unit={unit}{more})"


def normed(x: list[float], w: list[float], unit: int, eps: float = 1e-6, more: str = "") -> object:
    made = ran(NORM.format(eps=eps, unit=unit, more=more), {"x.w": [x], "w": w}).tensors
    return made["y"][0]


def test_c11_one_is_added_to_a_weight_unrounded() -> None:
    import ml_dtypes

    first = normed([1] + [0] * 8, [15.8125] + [0] * 8, 9, 0.0, ", plus_one=true")[0]
    assert first == 50.4375
    assert float(np.float32(first).astype(ml_dtypes.bfloat16)) == 50.5


@pytest.mark.parametrize(
    ("weight", "more", "times"), [(0, ", plus_one=true", 1), (1, "", 1), (1, ", plus_one=true", 2)]
)
def test_c12_a_weight_is_plain_or_less_one(weight: int, more: str, times: int) -> None:
    expected = np.array([0.36514835, 0.73029669, 1.09544504, 1.46059339])
    ours = normed([1, 2, 3, 4], [weight] * 4, 4, more=more)
    np.testing.assert_allclose(ours, times * expected, atol=1e-7)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (2, [0.84852814, 1.13137085, 0.84852814, 1.13137085]),
        (4, [1.19404463, 1.5920595, 0.11940446, 0.15920595]),
    ],
)
def test_c25_a_norm_is_of_each_head_or_of_the_whole(unit: int, expected: list[float]) -> None:
    ours = normed([3, 4, 0.3, 0.4], [1] * unit, unit, 0.0)
    np.testing.assert_allclose(ours, expected, atol=1e-8)


QUANTIZED = """\
graph(model=m, form=decode, rows=1, params=(), outputs=(one, expert, head, next))
x.w = const(format=f32, shape=(1, 64))
w = const(format=q8_0, shape=(3, 64))
stack = const(format=q8_0, shape=(1, 3, 64))
ids = carried(rows=1)
x = embed(ids=ids, table=x.w)
one = linear(x=x, w=w)
first = part(x=x, pitch=64, offset=0, width=1, units=1)
chosen = topk(x=first, k=1)
expert = xlinear(x=x, ids=chosen, w=stack, experts=1)
head = hlinear(x=x, w=stack, heads=1)
next = argmax(x=one)
"""


def test_products_of_stacks_read_what_a_product_reads() -> None:
    rng = np.random.default_rng(7)
    w = rng.normal(size=(3, 64))
    constants = {"x.w": rng.normal(size=(1, 64)), "w": w, "stack": w[None]}
    by_numerics = {}
    for numerics in ("precise", "quantized"):
        oracle = StepOracle(parse(QUANTIZED), constants, numerics=numerics)
        out = by_numerics[numerics] = oracle.run({"ids": [0]}, {})
        np.testing.assert_array_equal(out["expert"], out["one"])
        np.testing.assert_array_equal(out["head"], out["one"])
    assert (by_numerics["precise"]["one"] != by_numerics["quantized"]["one"]).all()
