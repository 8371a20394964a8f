"""What a request that does not say gets: the model's own record and the checkpoint's settings."""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec.structs import replace

from bedstone.spec.frozen import Frozen
from bedstone.spec.target import Behavior, Policy, Preset

Turn = Literal["thinking_text", "non_thinking", "tools"]

SET = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
"""What a `generation_config.json` may set of these."""


class Usual(Frozen):
    """How a model is served: its `policy`, and what the checkpoint's own file sets."""

    policy: Policy = Policy()
    own: Mapping[str, float] = {}

    @property
    def behavior(self) -> Behavior:
        """What is done for the model beyond sampling."""
        return self.policy.behavior

    def preset(self, turn: Turn) -> Preset:
        """How tokens are drawn in a turn; the record or the checkpoint, whichever counts more."""
        preset: Preset = getattr(self.policy.sampling, turn)
        if not self.behavior.prefer_presets:
            return _with(preset, self.own)
        plain = Preset()
        own = {n: v for n, v in self.own.items() if getattr(preset, n) == getattr(plain, n)}
        return _with(preset, own)

    def variables(self, given: Mapping[str, Any], *, tools: bool) -> dict[str, Any]:
        """A chat template's switches; what the request gives counts more."""
        behavior = self.behavior
        thinks = behavior.thinking_default and (behavior.thinking_in_tools or not tools)
        variables: dict[str, Any] = {"enable_thinking": thinks}
        if behavior.preserve_thinking is not None:
            variables["preserve_thinking"] = behavior.preserve_thinking
        return variables | dict(given)


def _with(preset: Preset, values: Mapping[str, Any]) -> Preset:
    return replace(preset, **values)


def own_settings(config: Mapping[str, object]) -> dict[str, float]:
    """What a `generation_config.json` sets, as far as it can be set here.

    A file that says `do_sample` is false sets temperature 0.
    """
    found: dict[str, float] = {}
    for name in SET:
        value = config.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and _fits(name, value):
            found[name] = value
    if config.get("do_sample") is False:
        found["temperature"] = 0.0
    return found


def _fits(name: str, value: float) -> bool:
    if name == "top_k":
        return isinstance(value, int) and value >= 0
    most = 2 if name in {"temperature", "repetition_penalty"} else 1
    least = 0 if name in {"temperature", "min_p"} else 1e-9
    return least <= value <= most
