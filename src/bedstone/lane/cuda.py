"""The CUDA lane's shim: a launch exists if the library has its kernel and the sizes suit it."""

from dataclasses import dataclass

from bedstone.lane.cpu import MOST_EXPERTS, experts_of, missing
from bedstone.lane.launch import Attending, ExpertSum, Launch, Sequences
from bedstone.library.kernel import KernelSet


@dataclass(frozen=True, slots=True)
class CudaShim:
    """Answers from a set of kernels."""

    kernels: KernelSet

    def lacks(self, launch: Launch) -> str | None:
        """Why no CUDA kernel runs `launch`."""
        if isinstance(launch, Sequences):
            return self.lacks(launch.whole)
        return _unfit(launch) or missing(launch, self.kernels)


def _unfit(launch: Launch) -> str | None:
    """What a kernel's sizes do not suit."""
    experts = experts_of(launch)
    if experts > MOST_EXPERTS:
        return f"{experts} experts are more than {MOST_EXPERTS}"
    if isinstance(launch, ExpertSum) and launch.shared and launch.shared.x.form != launch.x.form:
        return "codes are read of the experts' network or of the shared one, not of both"
    if isinstance(launch, Attending) and launch.splits > 1:
        return f"the span is attended whole, not in {launch.splits} pieces"
    return None
