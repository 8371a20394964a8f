"""The lanes there are: what lowers a step for a vendor's devices, and what it lowers it with."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from bedstone.errors import TargetError
from bedstone.graph.step import StepGraph
from bedstone.lane.cpu import CpuShim
from bedstone.lane.cuda import CudaShim
from bedstone.lane.facts import Knobs
from bedstone.lane.plan import plan
from bedstone.lane.schedule import Numerics, Schedule
from bedstone.lane.shim import Shim
from bedstone.library.catalog import cpu_kernels
from bedstone.library.cuda.catalog import cuda_kernels
from bedstone.library.kernel import CacheType, KernelSet
from bedstone.spec.target import Vendor
from bedstone.target.architecture import CLUSTERS, WARPGROUPS, parse_arch
from bedstone.target.cpu import choose
from bedstone.target.features import read_features
from bedstone.target.hardware import HardwareSet, find_set, read_sets
from bedstone.target.pin import AUTO, parse_target


@dataclass(frozen=True, slots=True)
class Lane:
    """How steps of one numerics are lowered for one vendor's devices, and by which kernels."""

    numerics: Numerics
    kernels: KernelSet
    shim: Shim
    knobs: Knobs

    @property
    def unfused(self) -> "Lane":
        """The same lane where no launch quantizes its result: quantizes stand apart."""
        return replace(self, knobs=replace(self.knobs, fuse_quant=False))

    def lower(self, graph: StepGraph, held: Collection[str] = ()) -> Schedule:
        """The schedule of `graph`, without the rules `held` names."""
        return plan(
            graph,
            numerics=self.numerics,
            shim=self.shim,
            knobs=self.knobs,
            coding=self.kernels.coding,
            held=held,
        )


def lane_of(hardware: HardwareSet, numerics: Numerics) -> Lane:
    """The lane of a hardware set; one that only holds models is a `TargetError`."""
    made = _LANES.get(hardware.vendor)
    if made is None:
        raise TargetError(f"target `{hardware.name}` holds models and no kernels")
    return made(hardware, numerics)


def target_lane(target: str, numerics: Numerics) -> Lane:
    """The lane of a target as it is written, whether or not this machine runs it."""
    wanted, _ = parse_target(target)
    sets = read_sets()
    named = choose(wanted, sets, read_features()) if wanted == AUTO else find_set(wanted, sets)
    return lane_of(named, numerics)


def _cpu(_: HardwareSet, numerics: Numerics) -> Lane:
    kernels = cpu_kernels(_cache_of(numerics))
    return Lane(numerics, kernels, CpuShim(kernels), Knobs())


def _cuda(hardware: HardwareSet, numerics: Numerics) -> Lane:
    arch = parse_arch(hardware.arch)
    clusters = arch is not None and arch.capability >= CLUSTERS
    kernels = cuda_kernels(
        _cache_of(numerics),
        clusters=clusters,
        warpgroups=hardware.arch == WARPGROUPS,
    )
    return Lane(numerics, kernels, CudaShim(kernels), Knobs(max_chunk=2048))


def _cache_of(numerics: Numerics) -> CacheType:
    """Rounded activations go with rounded caches."""
    return "bf16" if numerics == "quantized" else "f32"


_LANES: dict[Vendor, Callable[[HardwareSet, Numerics], Lane]] = {"cpu": _cpu, "nvidia": _cuda}
