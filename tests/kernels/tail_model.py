"""What a layer does behind its attention, in float64, of activations in eight bits."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernels.reference import ACTS, Array

LOT = 32


def coded(x: Array) -> Array:
    """Values in eight bits, 32 of which share a scale, as float64 again."""
    lots = x.astype(np.float32).reshape(-1, LOT)
    scales = np.abs(lots).max(-1, keepdims=True) / np.float32(127)
    with np.errstate(divide="ignore"):
        inverse = np.where(scales > 0, np.float32(1) / scales, np.float32(0))
    codes = np.rint(lots.astype(np.float64) * inverse.astype(np.float64))
    return (codes * scales.astype(np.float64)).reshape(x.shape)


def as_they_are(x: Array) -> Array:
    """Values that are not coded."""
    return x.astype(np.float64)


@dataclass(frozen=True, slots=True)
class Tail:
    """The operands of one launch; matrices by their names in float64."""

    matrices: Mapping[str, Array]
    args: Mapping[str, Array]

    def results(self, code=coded) -> dict[str, Array]:
        """The sum and the three products behind it; `code` makes what is multiplied."""
        held, wide = self.matrices, {n: v.astype(np.float64) for n, v in self.args.items()}
        mid = wide["x"][0] + held["wo"] @ code(self.args["attended"][0])
        m, by = self._weighted(mid, "w_post", "_post", code)
        act = ACTS[int(self.args["act"])]
        h = code(act(by * (held["wg"] @ m)) * (by * (held["wu"] @ m)))
        total = mid + held["wd"] @ h
        xn, by = self._weighted(total, "w_in", "", code)
        return {"sum": total, **{f"y{i}": by * (held[f"w{i}"] @ xn) for i in range(3)}}

    def _weighted(self, row: Array, weight: str, ending: str, code) -> tuple[Array, float]:
        """A row times its norm's weights, and the norm's factor, which products are given."""
        w, args = self.args[weight].astype(np.float64), self.args
        factor = 1 / np.sqrt((row * row).mean() + args[f"eps{ending}"])
        return code(row * (args[f"plus_one{ending}"] + w)), float(factor)
