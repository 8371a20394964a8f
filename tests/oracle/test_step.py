"""The step interpreter on graphs small enough to work out by hand."""

import numpy as np
import pytest

from bedstone.errors import CallerError
from bedstone.graph.parse import parse
from bedstone.oracle.step import StepOracle

HEAD = "graph(model=m, form={form}, rows={rows}, params=({params}), outputs=({out},))\n"
CLOSE = "next = argmax(x={x})\n"


def one_row(body: str, out: str, constants: dict[str, object], **params: int) -> np.ndarray:
    """The tensor `out` of a decode step whose `x` is row 0 of the constant `x.w`."""
    return run("decode", 1, body, out, constants, **params)


def run(
    form: str, rows: int, body: str, out: str, constants: dict[str, object], **params: int
) -> np.ndarray:
    arrays = {name: np.array(values, np.float64) for name, values in constants.items()}
    declared = "".join(
        f"{name} = const(format=f32, shape=({', '.join(map(str, a.shape))},))\n"
        for name, a in arrays.items()
    )
    names = ", ".join(params)
    text = HEAD.format(form=form, rows=rows, params=names + "," * (len(params) == 1), out=out)
    text += declared + f"ids = carried(rows={rows})\nx = embed(ids=ids, table=x.w)\n{body}"
    oracle = StepOracle(parse(text), arrays, np.float64)
    oracle.run({"ids": list(range(rows))}, params)
    return oracle.tensors[out]


TURN = "r = rope(x=x, rope=turn, pos=pos, heads=1, head_dim={d}, rot=4, kind={kind})\n"
FREQUENCIES = "turn = ropetable(inv_freq=(1.0, 0.01))\n"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("neox", [-1.98411065, 1.95990067, 2.4623779, 4.01979967]),
        ("pair", [-1.14263966, 1.9220756, 2.95985067, 4.0297995]),
    ],
)
def test_c09_both_pairings_of_a_rotation(kind: str, expected: list[float]) -> None:
    body = FREQUENCIES + TURN.format(d=4, kind=kind) + CLOSE.format(x="r")
    turned = one_row(body, "r", {"x.w": [[1, 2, 3, 4]]}, pos=2)
    np.testing.assert_allclose(turned[0], expected, atol=5e-9)


def test_c10_a_partial_rotation_leaves_the_rest_of_the_head() -> None:
    body = FREQUENCIES + TURN.format(d=8, kind="neox") + CLOSE.format(x="r")
    turned = one_row(body, "r", {"x.w": [[1, 2, 3, 4, 5, 6, 7, 8]]}, pos=2)
    expected = [-1.98411065, 1.95990067, 2.4623779, 4.01979967, 5, 6, 7, 8]
    np.testing.assert_allclose(turned[0], expected, atol=5e-9)


def test_a_rotation_is_scaled_by_the_attention_factor() -> None:
    body = "turn = ropetable(inv_freq=(1.0, 0.01), attention_factor=2.0)\n"
    body += TURN.format(d=4, kind="neox") + CLOSE.format(x="r")
    turned = one_row(body, "r", {"x.w": [[1, 2, 3, 4]]}, pos=2)
    expected = 2 * np.array([-1.98411065, 1.95990067, 2.4623779, 4.01979967])
    np.testing.assert_allclose(turned[0], expected, atol=1e-8)


@pytest.mark.parametrize(("eps", "expected"), [("1e-06", 0.70710678), ("1e-05", 0.30151134)])
def test_c14_the_norm_takes_its_own_epsilon(eps: str, expected: float) -> None:
    body = f"n = norm(x=x, w=w, eps={eps}, unit=4)\n" + CLOSE.format(x="n")
    normed = one_row(body, "n", {"x.w": [[0.001] * 4], "w": [1] * 4})
    np.testing.assert_allclose(normed[0], [expected] * 4, atol=5e-9)


def test_a_norm_of_units_can_add_one_to_its_weight() -> None:
    body = "n = norm(x=x, w=w, eps=0.0, unit=2, plus_one=true)\n" + CLOSE.format(x="n")
    normed = one_row(body, "n", {"x.w": [[3, 3, 0, -5]], "w": [0, 1]})
    np.testing.assert_allclose(normed[0], [1, 2, 0, -2 * 2**0.5], atol=1e-12)


def attended(
    scores: list[float], values: list[float], heads: str = "heads=1, groups=1", extra: str = ""
) -> np.ndarray:
    """Attention of a chunk's last row, whose query is 1, over keys that are the scores."""
    rows = len(scores)
    table = [[1.0, s, v] for s, v in zip(scores, values, strict=True)]
    picks = {"q.m": [[1, 0, 0]], "k.m": [[0, 1, 0]], "v.m": [[0, 0, 1]]}
    body = "".join(f"{n} = table(capacity={rows}, width=1)\n" for n in ("keys", "values"))
    body += "".join(f"{n} = linear(x=x, w={n}.m)\n" for n in "qkv")
    body += "keys@1 = set(table=keys, x=k, at=atparam(param=pos))\n"
    body += "values@1 = set(table=values, x=v, at=atparam(param=pos))\n"
    body += f"a = attention(q=q, k=keys@1, v=values@1, pos=pos, {heads}, dk=1, dv=1, scale=1.0"
    body += f"{extra})\nlast = row(x=a, at=fixed(row={rows - 1}))\n" + CLOSE.format(x="last")
    return run("chunk", rows, body, "a", {"x.w": table, **picks}, pos=rows)


def test_c17_a_cap_squeezes_scores_before_the_softmax() -> None:
    capped = attended([100, 90], [1, 0], extra=", softcap=50.0")
    np.testing.assert_allclose(capped[-1], 0.70288591, atol=5e-9)
    np.testing.assert_allclose(attended([100, 90], [1, 0])[-1], 0.99995460, atol=5e-9)


def test_c17_the_final_logits_are_capped() -> None:
    body = "c = softcap(x=x, cap=30.0)\n" + CLOSE.format(x="c")
    capped = one_row(body, "c", {"x.w": [[60, 30, 0, -60]]})
    np.testing.assert_allclose(capped[0], [28.9208274, 22.8478247, 0, -28.9208274], atol=5e-8)


def test_c18_no_cap_leaves_scores_as_they_are() -> None:
    np.testing.assert_allclose(attended([1, 2], [1, 3])[-1], 2.46211716, atol=5e-9)


def test_c21_a_window_counts_the_row_itself() -> None:
    means = attended([0] * 8, list(range(8)), extra=", window=4")
    expected = [0, 0.5, 1, 1.5, 2.5, 3.5, 4.5, 5.5]
    np.testing.assert_allclose(means[:, 0], expected, atol=1e-12)


@pytest.mark.parametrize(("heads", "groups"), [(40, 8), (24, 4), (28, 4), (64, 4), (6, 2)])
def test_c26_each_query_head_reads_its_own_group(heads: int, groups: int) -> None:
    dim = 4
    values = np.repeat(np.arange(groups), dim)
    constants = {
        "x.w": [[1.0]],
        "q.m": np.ones((heads * dim, 1)),
        "k.m": np.ones((groups * dim, 1)),
        "v.m": values[:, None],
    }
    width = groups * dim
    body = "".join(f"{n} = table(capacity=1, width={width})\n" for n in ("keys", "values"))
    body += "".join(f"{n} = linear(x=x, w={n}.m)\n" for n in "qkv")
    body += "keys@1 = set(table=keys, x=k, at=atparam(param=pos))\n"
    body += "values@1 = set(table=values, x=v, at=atparam(param=pos))\n"
    body += f"a = attention(q=q, k=keys@1, v=values@1, pos=pos, heads={heads}, groups={groups}, "
    body += f"dk={dim}, dv={dim}, scale=0.5)\n" + CLOSE.format(x="a")
    out = one_row(body, "a", constants, pos=1)
    group = [head // (heads // groups) for head in range(heads)]
    assert out[0].reshape(heads, dim)[:, 0].tolist() == group


def test_c28_a_tie_takes_the_lower_index() -> None:
    logits = np.zeros((1, 512))
    logits[0, [5, 256]] = 1.0
    assert one_row(CLOSE.format(x="x"), "next", {"x.w": logits}).tolist() == [[5]]


@pytest.mark.parametrize("width", [512, 4096])
def test_c29_a_product_of_ones_counts_them(width: int) -> None:
    body = "y = linear(x=x, w=w)\n" + CLOSE.format(x="y")
    out = one_row(body, "y", {"x.w": [[1] * width], "w": [[1] * width]})
    assert out.tolist() == [[width]]


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        ("silu", [-0.2689414214, 0.0, 1.7615941560, -0.0, 1000.0]),
        ("sigmoid", [0.2689414214, 0.5, 0.8807970780, 0.0, 1.0]),
        ("softplus", [0.3132616875, 0.6931471806, 2.1269280110, 0.0, 1000.0]),
        ("gelu_tanh", [-0.1588080094, 0.0, 1.9545976940, -0.0, 1000.0]),
    ],
)
def test_activations_hold_at_both_ends(fn: str, expected: list[float]) -> None:
    body = f"y = act(x=x, fn={fn})\n" + CLOSE.format(x="y")
    out = one_row(body, "y", {"x.w": [[-1, 0, 2, -1000, 1000]]})
    np.testing.assert_allclose(out[0], expected, atol=1e-9)


def test_elementwise_ops_and_biases() -> None:
    body = (
        "d = scale(x=x, by=3.0)\ns = add(a=x, b=d)\np = mul(a=s, b=d)\nb = add(a=p, b=v)\n"
        "y = linear(x=b, w=m, bias=v)\n" + CLOSE.format(x="y")
    )
    constants = {"x.w": [[1, -2]], "v": [10, 20], "m": [[1, 1], [0, 2]]}
    out = one_row(body, "y", constants)
    assert out.tolist() == [[22 + 68 + 10, 2 * 68 + 20]]


ROWS = """\
graph(model=m, form=chunk, rows=4, row_param=n, params=(n, pos), outputs=(sum, next))
x.w = const(format=f32, shape=(8, 2))
t = table(capacity=6, width=2)
ids = carried(rows=4)
x = embed(ids=ids, table=x.w)
t@1 = set(table=t, x=x, at=atparam(param=pos))
first = row(x=t@1, at=fixed(row=0))
last = row(x=x, at=atparam(param=n))
sum = add(a=first, b=last)
next = argmax(x=sum)
"""
TWO_COLUMNS = {"x.w": np.arange(16.0).reshape(8, 2)}


def test_a_step_takes_as_many_rows_as_its_param_says() -> None:
    oracle = StepOracle(parse(ROWS), TWO_COLUMNS)
    out = oracle.run({"ids": [3, 5]}, {"n": 2, "pos": 2})
    assert out["sum"].tolist() == [[6 + 10, 7 + 11]]
    assert out["next"].tolist() == [[1]]
    assert oracle.tables["t"][:2].tolist() == [[6, 7], [10, 11]]
    assert np.isnan(oracle.tables["t"][2:]).all()
    oracle.run({"ids": [0, 1, 2, 4]}, {"n": 4, "pos": 6})
    assert oracle.tables["t"].tolist() == [[6, 7], [10, 11], [0, 1], [2, 3], [4, 5], [8, 9]]


def test_a_row_nobody_wrote_poisons_what_reads_it() -> None:
    oracle = StepOracle(parse(ROWS), TWO_COLUMNS)
    assert np.isnan(oracle.run({"ids": [3]}, {"n": 1, "pos": 4})["sum"]).all()


def test_a_row_keeps_what_it_held_when_taken() -> None:
    text = ROWS.replace("last =", "t@2 = set(table=t@1, x=x, at=fixed(row=0))\nlast =")
    text = text.replace("at=atparam(param=pos)", "at=fixed(row=1)").replace(
        "first = row(x=t@1, at=fixed(row=0))", "first = row(x=t@1, at=fixed(row=1))"
    )
    out = StepOracle(parse(text), TWO_COLUMNS).run({"ids": [3, 5]}, {"n": 2, "pos": 2})
    assert out["sum"].tolist() == [[6 + 10, 7 + 11]]


def test_scratch_rows_hold_nothing_when_a_step_begins() -> None:
    scratch = ROWS.replace("capacity=6, width=2", "capacity=6, width=2, scratch=true")
    oracle = StepOracle(parse(scratch), TWO_COLUMNS)
    assert not np.isnan(oracle.run({"ids": [3, 5]}, {"n": 2, "pos": 2})["sum"]).any()
    assert np.isnan(oracle.run({"ids": [3]}, {"n": 1, "pos": 3})["sum"]).all()
    assert oracle.tables == {}


@pytest.mark.parametrize(
    ("ids", "params", "message"),
    [
        ({"ids": [3]}, {"n": 2, "pos": 2}, "`ids` holds 1 ids for a step of 2 rows"),
        ({"ids": [3, 8]}, {"n": 2, "pos": 2}, "`ids` holds an id outside the 8 of `x.w`"),
        ({"ids": [3, -1]}, {"n": 2, "pos": 2}, "`ids` holds an id outside the 8 of `x.w`"),
        ({}, {"n": 2, "pos": 2}, "no value is given for `ids`"),
        ({"ids": [3, 5]}, {"n": 2}, "no value is given for `pos`"),
        ({"ids": [3, 5]}, {"n": 2, "pos": 1}, "`t@1` asks for rows -1 to 1 of 6"),
        ({"ids": [3, 5]}, {"n": 2, "pos": 7}, "`t@1` asks for rows 5 to 7 of 6"),
        ({"ids": []}, {"n": 0, "pos": 7}, "`n` is 0, not 1 to 4 rows"),
        ({"ids": [0] * 5}, {"n": 5, "pos": 5}, "`n` is 5, not 1 to 4 rows"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(
    ids: dict[str, list[int]], params: dict[str, int], message: str
) -> None:
    oracle = StepOracle(parse(ROWS), TWO_COLUMNS)
    with pytest.raises(CallerError) as error:
        oracle.run(ids, params)
    assert message in str(error.value)


def test_constants_that_do_not_fit_are_refused() -> None:
    with pytest.raises(CallerError, match=r"`x.w` is \[2, 8\], but the graph reads \[8, 2\]"):
        StepOracle(parse(ROWS), {"x.w": np.zeros((2, 8))})
    with pytest.raises(CallerError, match=r"no value is given for `x\.w`"):
        StepOracle(parse(ROWS), {})


def test_a_graph_that_is_not_legal_is_refused() -> None:
    with pytest.raises(CallerError, match="reads `t` after `t@1`"):
        StepOracle(parse(ROWS.replace("x=t@1", "x=t")), TWO_COLUMNS)
