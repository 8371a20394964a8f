"""Routers and the mixture's products: against float64 and NumPy, fused against unfused."""

import numpy as np
import pytest

from bedstone.spec.dtype import FormatName
from kernels.harness import Library, poison
from kernels.reference import Array, sigmoid, weights
from kernels.test_glu import quantized_outputs
from kernels.test_linear import SOME_FORM_CASES, K, activations, entry, linear, rows_of

forms = pytest.mark.parametrize(("name", "codes"), SOME_FORM_CASES)


def score(library: Library, x: Array, fn: int) -> Array:
    y = poison(x.shape, np.float32)
    library.call("score", x=x, y=y, rows=len(x), experts=x.shape[1], fn=fn)
    return y


@pytest.mark.parametrize("experts", [3, 60, 128])
def test_scores_are_near_float64(library: Library, experts: int) -> None:
    x = (4 * np.random.default_rng(experts).standard_normal((3, experts))).astype(np.float32)
    wide = x.astype(np.float64)
    exp = np.exp(wide - wide.max(-1, keepdims=True))
    np.testing.assert_allclose(score(library, x, 0), exp / exp.sum(-1, keepdims=True), rtol=3e-6)
    np.testing.assert_allclose(score(library, x, 1), sigmoid(wide), rtol=1e-6)


def topk(
    library: Library, x: Array, chosen: int, bias: Array | None = None, **groups: int
) -> Array:
    ids = poison((len(x), chosen), np.int32)
    given = {"groups": 1, "group_k": 1, "group_best": 1} | groups
    biased = {} if bias is None else {"bias": bias}
    args = {"x": x, "ids": ids, "rows": len(x), "experts": x.shape[1], "chosen": chosen}
    library.call("topk" if bias is None else "topk_b", **args, **given, **biased)
    return ids


def best(scores: Array, k: int) -> Array:
    return np.argsort(-scores, kind="stable", axis=-1)[..., :k]


@pytest.mark.parametrize(("experts", "chosen"), [(8, 3), (128, 8), (5, 5), (1, 1)])
def test_the_best_are_chosen_and_ties_take_the_lower_index(
    library: Library, experts: int, chosen: int
) -> None:
    rng = np.random.default_rng(experts)
    x = rng.integers(0, 6, (5, experts)).astype(np.float32)
    bias = rng.integers(0, 3, experts).astype(np.float32)
    np.testing.assert_array_equal(topk(library, x, chosen), best(x, chosen))
    np.testing.assert_array_equal(topk(library, x, chosen, bias), best(x + bias, chosen))


@pytest.mark.parametrize(("groups", "group_k", "group_best"), [(4, 2, 1), (8, 3, 2), (2, 1, 4)])
def test_only_experts_of_the_best_groups_are_chosen(
    library: Library, groups: int, group_k: int, group_best: int
) -> None:
    x = np.random.default_rng(groups).standard_normal((6, 32)).astype(np.float32)
    ids = topk(library, x, 4, groups=groups, group_k=group_k, group_best=group_best)
    for row, chosen in zip(x, ids, strict=True):
        grouped = row.reshape(groups, -1)
        worth = np.sort(grouped, axis=1)[:, -group_best:].sum(axis=1)
        allowed = np.full_like(grouped, -np.inf)
        kept = best(worth, group_k)
        allowed[kept] = grouped[kept]
        np.testing.assert_array_equal(chosen, best(allowed.reshape(-1), 4))


def test_ids_stay_ids_whatever_the_scores(library: Library) -> None:
    x = np.full((2, 9), np.nan, np.float32)
    x[1] = -np.inf
    ids = topk(library, x, 4, groups=3, group_k=2, group_best=2)
    for row in ids:
        assert len(set(row.tolist())) == 4
        assert row.min() >= 0
        assert row.max() < 9


@pytest.mark.parametrize("normalise", [0, 1])
def test_weights_are_the_chosen_scores(library: Library, normalise: int) -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(0.1, 1, (4, 9)).astype(np.float32)
    ids = np.stack([rng.permutation(9)[:3] for _ in range(4)]).astype(np.int32)
    y = poison((4, 3), np.float32)
    args = {"x": x, "ids": ids, "y": y, "rows": 4, "experts": 9, "chosen": 3, "factor": 2.5}
    library.call("renorm", **args, normalise=normalise)
    taken = np.take_along_axis(x.astype(np.float64), ids, axis=1)
    whole = taken.sum(axis=1, keepdims=True) if normalise else 1
    np.testing.assert_allclose(y, taken / whole * 2.5, rtol=3e-7)


def product(library: Library, name: FormatName, args: dict[str, Array], w: Array, k: int) -> Array:
    """`linear`; on a GPU, where that has an order of sums of its own, a mixture of one expert."""
    if isinstance(library, Library):
        return linear(library, name, args, w, k)
    rows, n = len(next(iter(args.values()))), len(w)
    y, ids = poison((rows, n), np.float32), np.zeros((rows, 1), np.int32)
    sizes = {"rows": rows, "chosen": 1, "units": 1, "k": k, "n": n}
    library.call(entry("xlinear", name, codes="xq" in args), **args, ids=ids, w=w, y=y, **sizes)
    return y


@forms
@pytest.mark.parametrize("biased", [False, True])
def test_route_is_its_parts(
    library: Library, name: FormatName, *, codes: bool, biased: bool
) -> None:
    rng = np.random.default_rng(len(name))
    rows, experts, k = 11, 72, K[name]
    w, values = weights(name, experts, k, rng)
    scale = 1 / np.abs(values).max() / np.sqrt(k)
    x = (scale * rng.standard_normal((rows, k))).astype(np.float32)
    args, _ = activations(x, codes=codes)
    bias = {"bias": rng.uniform(0, 0.2, experts).astype(np.float32)} if biased else {}
    groups = {"groups": 6, "group_k": 3, "group_best": 2}
    logits = score(library, product(library, name, args, w, k), int(biased))
    ids = topk(library, logits, 4, bias.get("bias"), **groups)
    weight = poison((rows, 4), np.float32)
    sizes = {"rows": rows, "experts": experts, "chosen": 4, "normalise": 1, "factor": 1.5}
    library.call("renorm", x=logits, ids=ids, y=weight, **sizes)
    made = {"ids": poison(ids.shape, np.int32), "weights": poison(ids.shape, np.float32)}
    fused = entry("route", name, codes=codes, forms="_b" if biased else "")
    library.call(fused, **args, w=w, **bias, **made, **sizes, k=k, fn=int(biased), **groups)
    np.testing.assert_array_equal(made["ids"], ids)
    np.testing.assert_array_equal(made["weights"], weight)


# --- the experts' products -------------------------------------------------------------------


def xlinear(
    library: Library, name: FormatName, args: dict[str, Array], ids: Array, w: Array, n: int
) -> Array:
    """The products with matrices of `n` outputs, stacked in `w`."""
    rows, chosen = ids.shape
    x = next(iter(args.values()))
    units = x.shape[1] // K[name]
    y = poison((rows, chosen * n), np.float32)
    sizes = {"rows": rows, "chosen": chosen, "units": units, "k": K[name], "n": n}
    library.call(entry("xlinear", name, codes="xq" in args), **args, ids=ids, w=w, y=y, **sizes)
    return y


def chosen_ids(rng: np.random.Generator, rows: int, experts: int, chosen: int) -> Array:
    return np.stack([rng.permutation(experts)[:chosen] for _ in range(rows)]).astype(np.int32)


def elementwise(library: Library, name: str, **args: Array) -> Array:
    y = poison(next(iter(args.values())).shape, np.float32)
    library.call(name, **args, y=y, count=y.size)
    return y


@forms
@pytest.mark.parametrize("units", [1, 3])
@pytest.mark.parametrize("rows", [1, 14])
def test_xlinear_is_linear_with_the_experts_chosen(
    library: Library, name: FormatName, units: int, rows: int, *, codes: bool
) -> None:
    rng = np.random.default_rng([rows, len(name)])
    experts, chosen, k, n = 5, 3, K[name], 41
    w, values = weights(name, experts * n, k, rng)
    ids = chosen_ids(rng, rows, experts, chosen)
    x = rng.standard_normal((rows * units, k)).astype(np.float32)
    args, exact = activations(x, codes=codes)
    wide = {key: value.reshape(rows, -1) for key, value in args.items()}
    y = xlinear(library, name, wide, ids, w, n).reshape(rows, chosen, n)
    for row, j in np.ndindex(ids.shape):
        expert = slice(ids[row, j] * n, (ids[row, j] + 1) * n)
        at = row * units + (j if units > 1 else 0)
        own = rows_of(args, slice(at, at + 1))
        alone = product(library, name, own, np.ascontiguousarray(w[expert]), k)[0]
        np.testing.assert_array_equal(y[row, j], alone)
        expected = values[expert] @ exact[at]
        assert np.abs(y[row, j] - expected).max() <= 1e-5 * np.abs(exact[at]).max() * np.abs(
            values
        ).max() * np.sqrt(k)


def sum_of(library: Library, x: Array, w: Array) -> Array:
    n = x.shape[1] // w.shape[1]
    y = poison((len(x), n), np.float32)
    library.call("xsum", x=x, w=w, y=y, rows=len(x), chosen=w.shape[1], n=n)
    return y


def test_xsum_is_near_float64(library: Library) -> None:
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((3, 4 * 37)).astype(np.float32), rng.uniform(0, 1, (3, 4))
    y = sum_of(library, x, w.astype(np.float32))
    expected = (x.reshape(3, 4, 37) * w.astype(np.float32)[..., None].astype(np.float64)).sum(1)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@forms
@pytest.mark.parametrize("rows", [1, 70])
def test_xdown_is_its_parts(library: Library, name: FormatName, rows: int, *, codes: bool) -> None:
    rng = np.random.default_rng([rows, len(name)])
    experts, chosen, k, n = 6, 3, K[name], 37
    w, _ = weights(name, experts * n, k, rng)
    own, _ = weights(name, n, k, rng)
    ids, weight = chosen_ids(rng, rows, experts, chosen), rng.uniform(0, 1, (rows, chosen))
    mixed = {"ids": ids, "weights": weight.astype(np.float32)}
    args, _ = activations(rng.standard_normal((rows * chosen, k)).astype(np.float32), codes=codes)
    wide = {key: value.reshape(rows, -1) for key, value in args.items()}
    z, _ = activations(rng.standard_normal((rows, k)).astype(np.float32), codes=codes)
    routed = sum_of(library, xlinear(library, name, wide, ids, w, n), mixed["weights"])
    shared = product(library, name, z, own, k)
    share = rng.uniform(0, 1, rows).astype(np.float32)
    parts = {
        "": routed,
        "_s": elementwise(library, "add", a=routed, b=shared),
        "_sg": elementwise(
            library, "add", a=routed, b=sum_of(library, shared, share.reshape(rows, 1))
        ),
    }
    sizes = {"rows": rows, "chosen": chosen, "k": k, "n": n}
    for ending, expected in parts.items():
        also = {key.replace("x", "z") if codes else "zx": z[key] for key in z if ending}
        also |= {"sw": own, "sn": k} if ending else {}
        also |= {"share": share} if ending == "_sg" else {}
        y = poison((rows, n), np.float32)
        called = entry(f"xdown{ending}", name, codes=codes)
        library.call(called, **wide, **mixed, w=w, y=y, **sizes, **also)
        np.testing.assert_array_equal(y, expected)


@forms
@pytest.mark.parametrize(("rows", "act"), [(1, 0), (14, 1)])
def test_xglu_is_its_parts(
    library: Library, name: FormatName, rows: int, act: int, *, codes: bool
) -> None:
    rng = np.random.default_rng([rows, len(name)])
    experts, chosen, k, n, own = 5, 3, K[name], 64, 160
    (wg, values), (wu, _) = (weights(name, experts * n, k, rng) for _ in range(2))
    (sg, _), (su, _) = (weights(name, own, k, rng) for _ in range(2))
    ids = chosen_ids(rng, rows, experts, chosen)
    scale = np.float32(1 / np.abs(values).max() / np.sqrt(k))
    plain = scale * rng.standard_normal((rows, k)).astype(np.float32)
    args, _ = activations(plain, codes=codes)
    gate = {"gx": plain, "gw": (5 * rng.standard_normal(k)).astype(np.float32)}
    share = product(library, "f32", {"x": plain}, gate["gw"].reshape(1, k), k)
    share = elementwise(library, "sigmoid", x=share)[:, 0]

    def gated(g: Array, u: Array) -> Array:
        acted = elementwise(library, ("silu", "gelu_tanh")[act], x=g)
        return elementwise(library, "mul", a=acted, b=u)

    y = gated(*(xlinear(library, name, args, ids, w, n) for w in (wg, wu)))
    z = gated(*(product(library, name, args, w, k) for w in (sg, su)))
    sizes = {"rows": rows, "chosen": chosen, "k": k, "n": n, "act": act}
    for ending in ("", "_s", "_sg"):
        also = {"sg": sg, "su": su, "sn": own} if ending else {}
        also |= gate if ending == "_sg" else {}
        for form in ("", "_q", "_fq"):
            made = outputs_of("y", y, form) | (outputs_of("z", z, form) if ending else {})
            shared = {"share": poison((rows,), np.float32)} if ending == "_sg" else {}
            called = entry(f"xglu{ending}", name, codes=codes, forms=form)
            library.call(called, **args, ids=ids, wg=wg, wu=wu, **sizes, **also, **made, **shared)
            assert_forms_of(library, "y", made, y)
            if ending:
                assert_forms_of(library, "z", made, z)
            if shared:
                np.testing.assert_array_equal(shared["share"], share)


def outputs_of(name: str, like: Array, form: str) -> dict[str, Array]:
    floats = {} if form == "_q" else {name: poison(like.shape, np.float32)}
    codes = {} if form == "" else quantized_outputs(*like.shape)
    return floats | {name + key[1:]: value for key, value in codes.items()}


def assert_forms_of(library: Library, name: str, made: dict[str, Array], y: Array) -> None:
    apart = quantized_outputs(*y.shape)
    library.call("quantize", x=y, **apart, rows=y.shape[0], width=y.shape[1])
    expected = {name: y} | {name + key[1:]: value for key, value in apart.items()}
    for key in made.keys() & expected.keys():
        np.testing.assert_array_equal(made[key], expected[key])


@pytest.mark.parametrize("codes", [False, True])
def test_many_rows_of_one_expert_go_by_the_panel(library: Library, *, codes: bool) -> None:
    """More pairs than are sorted at a time, and more rows of an expert than a product takes."""
    rng = np.random.default_rng(0)
    rows, k, n = 900, K["q4_1"], 9
    w, _ = weights("q4_1", 3 * n, k, rng)
    ids = np.stack([rng.permutation([0, 0, 0, 1])[:3] for _ in range(rows)]).astype(np.int32)
    args, _ = activations(rng.standard_normal((rows, k)).astype(np.float32), codes=codes)
    y = xlinear(library, "q4_1", args, ids, w, n).reshape(rows, 3, n)
    whole = product(library, "q4_1", args, w, k).reshape(rows, 3, n)
    expected = np.take_along_axis(whole, ids[..., None], axis=1)
    np.testing.assert_array_equal(y, expected)
