"""Qwen3-Next and Qwen3.5: most layers recur, the others attend with a gate on each head."""

from bedstone.graph.step import Act, Mul, Out, Part, Ref
from bedstone.models.attention import attend, output, project_heads
from bedstone.models.blocks import decoder
from bedstone.models.body import Body
from bedstone.models.recurrent import delta_net


def qwen3_next(body: Body) -> tuple[Ref, Ref]:
    """The logits and next tokens of one step."""
    return decoder(body, _mix)


def _mix(body: Body, layer: int, x: Ref) -> Ref:
    recurrent = body.config.recurrent
    if recurrent is not None and body.config.layer_kinds[layer] == "recurrent":
        return delta_net(body, layer, x, recurrent)
    return _gated_attention(body, layer, x)


def _gated_attention(body: Body, layer: int, x: Ref) -> Ref:
    """Attention whose every head is multiplied by a gate that comes beside its query."""
    build, heads, width = body.build, body.config.heads, body.config.head_dim
    both = project_heads(body, layer, "q", x, 2 * heads)
    q = build.add(Part(both, Out(f"l{layer}.qh"), 2 * width, 0, width, heads))
    gate = build.add(Part(both, Out(f"l{layer}.qg"), 2 * width, width, width, heads))
    attended = attend(body, layer, x, q, head_norm=True)
    share = build.add(Act(gate, Out(f"l{layer}.qs"), "sigmoid"))
    return output(body, layer, build.add(Mul(attended, share, Out(f"l{layer}.gated"))))
