"""Weights into memory, and the programs that run while they are loaded.

A weight that is one run of a checkpoint tensor's bytes is used where the file is mapped, where the
device can and the bytes are aligned for its elements. Sources live from the first `derive` program
that reads them to the last, and are gone after that.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import WeightError
from bedstone.runtime.device import Device, Memory
from bedstone.runtime.image import Capture, build_image, largest_shared
from bedstone.runtime.lower import LoweredProgram, PackSlot, Pointer, Region, Slot, lower
from bedstone.runtime.memory import array_bytes, upper_bounds
from bedstone.runtime.regions import Regions
from bedstone.runtime.weights import Checkpoint, WeightPlan, fill, plan_weights
from bedstone.spec.dtype import DTYPE_BYTES
from bedstone.spec.manifest import Manifest

Progress = Callable[[str, int, int], None]
"""Told the stage of a load, how much of it is done and how much there is."""


@dataclass(frozen=True, slots=True)
class Binder:
    """The plans of a manifest's weights and sources, and the checkpoint they read."""

    manifest: Manifest
    checkpoint: Checkpoint | None
    plans: Mapping[str, WeightPlan]
    ranks: Mapping[str, int]
    progress: Progress

    def bind_weights(self, regions: Regions) -> int:
        """Give every weight its memory, filled; the bytes that are used in place."""
        names = [n for n in sorted(self.plans) if self.manifest.buffers[n].kind == "weight"]
        total = sum(self.plans[name].nbytes for name in names)
        done = in_place = 0
        for name in names:
            self.progress("weights", done, total)
            memory = self.in_place(name, regions.device)
            in_place += memory.nbytes if memory else 0
            regions.memory[Region("buffer", name)] = memory or self.copied(name, regions.device)
            done += self.plans[name].nbytes
        self.progress("weights", total, total)
        return in_place

    def run_derived(self, regions: Regions) -> None:
        """Run the `derive` programs in name order, every var at 1."""
        programs = [
            lower(self.manifest, name, self.ranks)
            for name, program in sorted(self.manifest.programs.items())
            if program.derive
        ]
        device = regions.device
        device.reserve_shared(largest_shared(programs, upper_bounds(self.manifest)))
        staged = dict(regions.memory)
        reads = [self.sources(program) for program in programs]
        for index, program in enumerate(programs):
            self.progress("derive", index, len(programs))
            for region in reads[index] - staged.keys():
                staged[region] = self.in_place(region.name, device) or self.copied(
                    region.name, device
                )
            run_once(program, self.manifest, replace(regions, memory=staged))
            for region in reads[index].difference(*reads[index + 1 :]):
                del staged[region]

    def in_place(self, name: str, device: Device) -> Memory | None:
        """The buffer's bytes where the checkpoint maps them, if they can serve there."""
        run = self.plans[name].run
        if run is None:
            return None
        data = self.raw(run.tensor)[run.source : run.source + run.width]
        if data.ctypes.data % DTYPE_BYTES[self.manifest.buffers[name].dtype]:
            return None
        return device.adopt(data)

    def copied(self, name: str, device: Device) -> Memory:
        """The buffer's bytes in device memory of their own."""
        plan = self.plans[name]
        memory = device.allocate(plan.nbytes)
        fill(device, memory, plan, self.raw)
        return memory

    def raw(self, tensor: str) -> NDArray[np.uint8]:
        """A tensor's bytes by its name."""
        if self.checkpoint is None:
            raise WeightError(f"tensor `{tensor}` is in no checkpoint")
        return self.checkpoint.raw(self.checkpoint.tensors[tensor])

    def sources(self, program: LoweredProgram) -> set[Region]:
        """The source buffers a program reads."""
        return {
            pointer.region
            for launch in program.launches
            for pointer in _pointers(launch.slots)
            if pointer.region.kind == "buffer"
            and self.manifest.buffers[pointer.region.name].kind == "source"
        }


def plan_binding(
    manifest: Manifest,
    checkpoint: Checkpoint | None,
    ranks: Mapping[str, int],
    progress: Progress,
) -> Binder:
    """Where every weight and source of the manifest comes from.

    Raises `WeightError`: the checkpoint lacks one or holds it in another type or size.
    """
    upper = upper_bounds(manifest)
    bound = {
        name: (buffer, array_bytes(buffer.dtype, buffer.shape, upper))
        for name, buffer in sorted(manifest.buffers.items())
        if buffer.kind in {"weight", "source"}
    }
    plans = plan_weights(bound, checkpoint.tensors if checkpoint else {}, ranks)
    return Binder(manifest, checkpoint, plans, ranks, progress)


def run_once(program: LoweredProgram, manifest: Manifest, regions: Regions) -> None:
    """Run a program that no caller drives: every var is 1."""
    capture = Capture(build_image(program, regions.linker()))
    capture.bind(dict.fromkeys(manifest.vars, 1))
    regions.device.replay(capture.address, capture.count, 1, ())


def _pointers(slots: tuple[Slot, ...]) -> Iterator[Pointer]:
    for slot in slots:
        for part in [f.slot for f in slot.fields] if isinstance(slot, PackSlot) else [slot]:
            if isinstance(part, Pointer):
                yield part
