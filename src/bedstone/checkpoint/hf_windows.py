"""Which layers of a model see a window of the rows before them, and how wide it is."""

from typing import Literal

from bedstone.checkpoint.config import LAYER_LIMIT, LayerKind
from bedstone.checkpoint.fields import FieldRules, Fields
from bedstone.errors import WeightError

WindowRule = Literal["none", "all", "switch", "late", "alternate", "pattern"]
"""How a family lays its windows out.

`none`; `all` layers; all where a `switch` is on; where it is on, the layers from
`max_window_layers` on (`late`), or every other layer before that (`alternate`); or all but every
last layer of a `pattern`.
"""

RULES = FieldRules(
    frozenset({"layer_types", "max_window_layers", "sliding_window", "use_sliding_window"})
)

DEFAULT_WINDOW = 4096
"""The window of a config that does not name one; null is none."""

KINDS: dict[str, LayerKind] = {"full_attention": "full", "sliding_attention": "sliding"}

Windows = tuple[int | None, tuple[LayerKind, ...]]


def parse_windows(fields: Fields, rule: WindowRule) -> Windows:
    """The window, and the kind of each layer where they differ.

    Raises `WeightError` where a layer slides over no window, or is of no known kind.
    """
    window = _width(fields, rule)
    kinds = fields.listed("layer_types", KINDS) or _laid_out(fields, rule)
    if window is None and "layer_types" in fields.values and "sliding" in kinds:
        raise WeightError(
            f"field `layer_types` of `{fields.where}` has sliding layers, but their window is off"
        )
    if window is None or "sliding" not in kinds:
        return None, ()
    return window, kinds if "full" in kinds else ()


def _width(fields: Fields, rule: WindowRule) -> int | None:
    switched = rule in ("switch", "late", "alternate")
    off = switched and not fields.flag("use_sliding_window", default=False)
    if rule == "none" or off:
        return None
    absent = "sliding_window" not in fields.values
    return DEFAULT_WINDOW if absent else fields.optional_size("sliding_window")


def _laid_out(fields: Fields, rule: WindowRule) -> tuple[LayerKind, ...]:
    """The kinds that follow from the family's rule."""
    layers = min(fields.size("num_hidden_layers"), LAYER_LIMIT + 1)
    edge = fields.count("max_window_layers", 28)
    pattern = fields.size("_sliding_window_pattern", fields.size("sliding_window_pattern", 6))

    def slides(layer: int) -> bool:
        match rule:
            case "none":
                return False
            case "all" | "switch":
                return True
            case "late":
                return layer >= edge
            case "alternate":
                return layer % 2 == 0 and layer < edge
            case "pattern":
                return (layer + 1) % pattern != 0

    return tuple("sliding" if slides(layer) else "full" for layer in range(layers))
