"""The block that reads a row alone: a gated network, or a mixture of such networks as experts."""

from bedstone.checkpoint.config import MixtureConfig
from bedstone.checkpoint.layers import EXPERTS, shared_name
from bedstone.graph.step import Act, Add, Mul, Out, Ref, Renorm, Score, TopK, XLinear, XSum
from bedstone.models.body import Body


def feed_forward(body: Body, layer: int, x: Ref) -> Ref:
    """What a layer makes of each row of the normed stream `x`."""
    config, mixture = body.config, body.config.mixture
    if mixture is not None and layer in mixture.layers:
        return mix_experts(body, layer, x, mixture)
    return gated(body, layer, x, "mlp", config.intermediate)


def gated(body: Body, layer: int, x: Ref, name: str, wide: int) -> Ref:
    """`down(act(gate(x)) * up(x))`, the matrices below `name` in the layer."""
    config, weight = body.config, f"model.layers.{layer}.{name}"
    bias = config.mlp_bias
    gate = body.project(f"l{layer}.gate", x, f"{weight}.gate_proj", wide, bias=bias)
    up = body.project(f"l{layer}.up", x, f"{weight}.up_proj", wide, bias=bias)
    act = body.build.add(Act(gate, Out(f"l{layer}.act"), config.activation))
    glu = body.build.add(Mul(act, up, Out(f"l{layer}.glu")))
    return body.project(f"l{layer}.down", glu, f"{weight}.down_proj", config.hidden, bias=bias)


def mix_experts(body: Body, layer: int, x: Ref, sizes: MixtureConfig) -> Ref:
    """The experts a row takes, weighed and summed; then the network that every row takes."""
    build, hidden, wide = body.build, body.config.hidden, sizes.intermediate
    ids, weights = _route(body, layer, x, sizes)

    def product(part: str, x: Ref, n: int, k: int) -> Ref:
        name = f"model.layers.{layer}.{EXPERTS}.{part}_proj.weight"
        w = body.const(name, sizes.experts, n, k)
        return build.add(XLinear(x, ids, w, Out(f"l{layer}.x{part}"), sizes.experts))

    gate, up = product("gate", x, wide, hidden), product("up", x, wide, hidden)
    act = build.add(Act(gate, Out(f"l{layer}.xact"), body.config.activation))
    glu = build.add(Mul(act, up, Out(f"l{layer}.xglu")))
    mixed = build.add(XSum(product("down", glu, hidden, wide), weights, Out(f"l{layer}.mixed")))
    if not sizes.shared:
        return mixed
    return build.add(Add(mixed, _share(body, layer, x, sizes), Out(f"l{layer}.y")))


def _route(body: Body, layer: int, x: Ref, sizes: MixtureConfig) -> tuple[Ref, Ref]:
    """The ids of the experts each row takes, and their weights."""
    build, name = body.build, f"model.layers.{layer}.mlp.gate"
    logits = body.project(f"l{layer}.router", x, name, sizes.experts, bias=False)
    scores = build.add(Score(logits, Out(f"l{layer}.score"), sizes.score))
    bias = body.const(f"{name}.e_score_correction_bias", sizes.experts) if sizes.bias else None
    chosen = TopK(
        scores,
        Out(f"l{layer}.ids"),
        sizes.chosen,
        bias,
        sizes.groups,
        sizes.group_k,
        sizes.group_best,
    )
    ids = build.add(chosen)
    weights = Renorm(scores, ids, Out(f"l{layer}.weights"), sizes.normalise, sizes.factor)
    return ids, build.add(weights)


def _share(body: Body, layer: int, x: Ref, sizes: MixtureConfig) -> Ref:
    """What the network all rows take makes of `x`, as much of it as its gate says."""
    build, name = body.build, shared_name(sizes)
    made = gated(body, layer, x, name, sizes.shared)
    if not sizes.shared_gate:
        return made
    weight = f"model.layers.{layer}.{name}_gate"
    gate = body.project(f"l{layer}.sgate", x, weight, 1, bias=False)
    share = build.add(Act(gate, Out(f"l{layer}.share"), "sigmoid"))
    return build.add(XSum(made, share, Out(f"l{layer}.shared")))
