"""What a mixture's entries compute: the router's choice, the experts' products, their sums."""

from bedstone.library.mathematics.family import Family

_CHOICE = {"experts": 16, "chosen": 3, "groups": 4, "group_k": 2, "group_best": 2}
_CHOOSE = "ids = chosen_of({}, $chosen, $groups, $group_k, $group_best)"
_IDS = {"ids": "distinct(rows, $chosen, $stack)"}
_SIZES = {"rows": 5, "chosen": 2, "k": 256, "n": 64, "sn": 96, "stack": 5, "act": 0}
_OWN_IN = {"sg": "sn k", "su": "sn k", "z": "rows sn"}
_OWN_OUT = {"zx": "rows sn", "sw": "n sn"}
_GATED = (
    "y = activated(by_expert(x, ids, wg, $n), $act) * by_expert(x, ids, wu, $n)\n"
    "y = y.reshape(-1, $n)\n"
)
_GATED_OWN = "z = activated(torch.matmul(x, sg.T), $act) * torch.matmul(x, su.T)\n"
_SHAPES = {"ids": "rows chosen", "wg": "stack*n k", "wu": "stack*n k"}
_DOWN = "y = weighted(by_expert(x, ids, w, $n), weights)\n"
_DOWN_SHAPES = {
    "x": "rows*chosen k", "ids": "rows chosen", "weights": "rows chosen", "w": "stack*n k",
    "y": "rows n",
}  # fmt: skip
_DOWN_SIZES = _SIZES | {"sn": 256}

MIXTURE: dict[str, Family] = {
    "score": Family(
        "routing",
        {"x": "rows experts", "y": "rows experts"},
        "y = scored(x, $fn)",
        sizes={"rows": 5, "experts": 16, "fn": 0},
    ),
    "topk": Family(
        "routing",
        {"x": "rows experts", "bias": "experts", "ids": "rows chosen"},
        "?bias: x = x + bias\n" + _CHOOSE.format("x"),
        "ids",
        sizes={"rows": 5} | _CHOICE,
        makes={"x": "with_equals(rows, $experts)", "bias": "with_equals(1, $experts)[0]"},
    ),
    "renorm": Family(
        "routing",
        {"x": "rows experts", "ids": "rows chosen", "y": "rows chosen"},
        "y = reweighted(x, ids, $normalise, $factor)",
        sizes={"rows": 5, "experts": 16, "chosen": 3, "normalise": 1, "factor": 2.5},
        makes={"x": "torch.rand(rows, $experts)", "ids": "distinct(rows, $chosen, $experts)"},
    ),
    "xsum": Family(
        "moe",
        {"x": "rows chosen*n", "w": "rows chosen", "y": "rows n"},
        "y = weighted(x, w)",
        sizes={"rows": 5, "chosen": 3, "n": 50},
    ),
    "route": Family(
        "routing",
        {"x": "rows k", "w": "experts k", "bias": "experts", "ids": "rows chosen",
         "weights": "rows chosen"},
        "scores = scored(torch.matmul(x, w.T), $fn)\njudged = scores\n"
        "?bias: judged = scores + bias\n" + _CHOOSE.format("judged") + "\n"
        "weights = reweighted(scores, ids, $normalise, $factor)",
        "ids weights",
        sizes={"rows": 11, "k": 256, "fn": 0, "normalise": 1, "factor": 2.5} | _CHOICE,
        clear="clearness(judged, $chosen, $groups, $group_k, $group_best)",
    ),
    "xlinear": Family(
        "moe",
        {"x": "rows units*k", "ids": "rows chosen", "w": "stack*n k", "y": "rows chosen*n"},
        "y = by_expert(x, ids, w, $n)",
        sizes=_SIZES | {"units": 1},
        makes=_IDS,
    ),
    "xglu": Family(
        "moe",
        {"x": "rows k", "y": "rows*chosen n"} | _SHAPES,
        _GATED,
        sizes=_SIZES,
        makes=_IDS,
    ),
    "xglu_s": Family(
        "moe",
        {"x": "rows k", "y": "rows*chosen n"} | _SHAPES | _OWN_IN,
        _GATED + _GATED_OWN,
        "y z",
        sizes=_SIZES,
        makes=_IDS,
    ),
    "xglu_sg": Family(
        "moe",
        {"x": "rows k", "y": "rows*chosen n", "gx": "rows k", "gw": "k", "share": "rows"}
        | _SHAPES | _OWN_IN,
        _GATED + _GATED_OWN + "share = sigmoid(torch.matmul(gx, gw))",
        "y z share",
        sizes=_SIZES,
        makes=_IDS | {"gw": "torch.randn($k) / $k ** 0.5"},
    ),
    "xdown": Family("moe", _DOWN_SHAPES, _DOWN, sizes=_DOWN_SIZES, makes=_IDS),
    "xdown_s": Family(
        "moe",
        _DOWN_SHAPES | _OWN_OUT,
        _DOWN + "y = y + torch.matmul(zx, sw.T)",
        sizes=_DOWN_SIZES,
        makes=_IDS,
    ),
    "xdown_sg": Family(
        "moe",
        _DOWN_SHAPES | _OWN_OUT | {"share": "rows"},
        _DOWN + "y = y + share[:, None] * torch.matmul(zx, sw.T)",
        sizes=_DOWN_SIZES,
        makes=_IDS,
    ),
}  # fmt: skip
