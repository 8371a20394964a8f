"""What every block of a model writes to: the builder, the config, and the names it declares.

Constants carry their canonical (Hugging Face) names. A tensor of layer `l` is named `l{l}.{role}`
(`l0.q`), the stream that enters it `x.{l}`; in a batch a sequence's own tensors end in its number
(`l0.q.2`), as its tables `k.{l}.{i}` and params `pos.{i}` do.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bedstone.checkpoint.config import ModelConfig, RopeConfig
from bedstone.errors import WeightError
from bedstone.graph.builder import Builder
from bedstone.graph.step import Add, Linear, Norm, Out, Ref, RopeTable, Table
from bedstone.spec.dtype import FormatName


@dataclass(frozen=True, slots=True)
class Body:
    """A step of one model being written; `formats` says how the checkpoint holds each constant.

    Its tokens are the likeliest, or `sampled` as each sequence's settings say.
    """

    config: ModelConfig
    formats: Mapping[str, FormatName]
    build: Builder
    capacity: int
    sampled: bool = False

    def const(self, name: str, *shape: int) -> Ref:
        """Declare a checkpoint constant, in the format the checkpoint holds it in."""
        try:
            fmt = self.formats[name]
        except KeyError:
            architecture = self.config.architecture
            raise WeightError(
                f"`{self.config.name}` has no tensor `{name}`, which {architecture} needs"
            ) from None
        return self.build.const(name, fmt, shape)

    def project(self, out: str, x: Ref, weight: str, width: int, *, bias: bool) -> Ref:
        """`x` by the matrix `{weight}.weight`, and `{weight}.bias` added where there is one."""
        w = self.const(f"{weight}.weight", width, self.build.value(x).width)
        y = self.build.add(Linear(x, w, Out(out)))
        if not bias:
            return y
        return self.build.add(Add(y, self.const(f"{weight}.bias", width), Out(f"{out}.b")))

    def norm(self, out: str, x: Ref, weight: str, unit: int) -> Ref:
        """Norm each `unit` values of `x` by the vector `{weight}.weight`."""
        config, w = self.config, self.const(f"{weight}.weight", unit)
        return self.build.add(Norm(x, w, Out(out), config.norm_eps, unit, config.norm_plus_one))

    def table(self, name: str, width: int) -> Ref:
        """Declare a carried table of as many rows as the caller reserves."""
        return self.build.table(Table(name, self.capacity, width))

    def rope(self, rope: RopeConfig) -> str:
        """Declare the frequencies of a rotation: the model's, or that of its sliding layers."""
        name = "rope" if rope is self.config.rope else "rope.local"
        return self.build.rope(RopeTable(name, rope.inv_freq, rope.attention_factor))
