"""The CPU lane's shim: a launch exists if the library has its kernel and the sizes suit it."""

from dataclasses import dataclass

from bedstone.lane.entries import entry
from bedstone.lane.launch import Attention, Launch, ToRows
from bedstone.lane.schedule import QBLOCK
from bedstone.library.catalog import KernelSet


@dataclass(frozen=True, slots=True)
class CpuShim:
    """Answers from a set of kernels."""

    kernels: KernelSet

    def lacks(self, launch: Launch) -> str | None:
        """Why no CPU kernel runs `launch`."""
        if isinstance(launch, Attention):
            unfit = _attention_unfit(launch)
            if unfit is not None:
                return unfit
        name = entry(launch)
        return None if self.kernels.get(name) else f"no kernel `{name}`"


def _attention_unfit(launch: Attention) -> str | None:
    """A block of the kernel owns one group's heads, so only whole quantized blocks of those."""
    if launch.splits > 1:
        return f"the span is attended whole, not in {launch.splits} pieces"
    owned = launch.heads // launch.groups * launch.dv
    if not isinstance(launch.dst, ToRows) and launch.dst.quant and owned % QBLOCK:
        return f"a group's {owned} values are no whole blocks of {QBLOCK}"
    return None
