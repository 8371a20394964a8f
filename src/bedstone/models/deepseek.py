"""DeepSeek V2 and V3: latent attention, and mixtures of experts above the first dense layers."""

from bedstone.errors import WeightError
from bedstone.graph.step import Ref
from bedstone.models.blocks import decoder
from bedstone.models.body import Body
from bedstone.models.latent import latent_attention


def deepseek(body: Body) -> tuple[Ref, Ref]:
    """The logits and next tokens of one step."""
    return decoder(body, _mix)


def _mix(body: Body, layer: int, x: Ref) -> Ref:
    latent = body.config.latent
    if latent is None:
        raise WeightError(f"`{body.config.name}` has no latent, which its architecture attends to")
    return latent_attention(body, layer, x, latent)
