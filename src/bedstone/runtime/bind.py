"""Weights into memory, and the programs that run while they are loaded.

A weight that is one run of a checkpoint tensor's bytes is used where the file is mapped, where the
device can and the bytes are aligned for its elements; the others lie together in memory of their
own. Sources live from the first `derive` program that reads them to the last, and are gone after
that.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bedstone.errors import WeightError
from bedstone.runtime.device import Arriving, Device, Memory, Stored
from bedstone.runtime.image import Capture, build_image
from bedstone.runtime.lower import LoweredProgram, PackSlot, Pointer, Region, Slot, lower
from bedstone.runtime.memory import array_bytes, upper_bounds
from bedstone.runtime.regions import Regions, carve, make_ready
from bedstone.runtime.weights import Checkpoint, WeightPlan, plan_weights, uploads
from bedstone.spec.dtype import DTYPE_BYTES
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Manifest, Placement

Progress = Callable[[str, int, int], None]
"""Told the stage of a load, how much of it is done and how much there is."""


class Binder(Frozen):
    """The plans of a manifest's weights and sources, and the checkpoint they read."""

    manifest: Manifest
    checkpoint: Checkpoint | None
    plans: Mapping[str, WeightPlan]
    ranks: Mapping[str, int]
    progress: Progress

    @contextmanager
    def bind_weights(
        self, regions: Regions, held: Mapping[str, Memory]
    ) -> Iterator[tuple[int, Arriving]]:
        """Give every weight its memory; the bytes used in place, and how the others arrive.

        Memory that is `held` has a weight already. None is on its way any more once the context is
        left.
        """
        device = regions.device
        names = [n for n in sorted(self.plans) if self.manifest.buffers[n].kind == "weight"]
        found = {name: self.held(name, held) or self.in_place(name, device) for name in names}
        bound = {Region("buffer", name): memory for name, memory in found.items() if memory}
        in_place = sum(memory.nbytes for memory in bound.values())
        copied = [name for name, memory in found.items() if memory is None]
        places: tuple[tuple[Placement, Callable[[int], Memory]], ...] = (
            ("device", device.allocate),
            ("host", device.allocate_host),
        )
        for placement, allocate in places:
            sizes = {
                Region("buffer", name): self.plans[name].nbytes
                for name in copied
                if self.manifest.buffers[name].placement == placement
            }
            bound |= carve(sizes, allocate) if sizes else {}
        regions.memory.update(bound)
        targets = {name: bound[Region("buffer", name)] for name in copied}
        arriving = self.fill(device, targets, in_place)
        try:
            yield in_place, arriving
        finally:
            arriving.close()

    def run_derived(self, regions: Regions) -> None:
        """Run the `derive` programs in name order, every var at 1."""
        programs = [
            lower(self.manifest, name, self.ranks)
            for name, program in sorted(self.manifest.programs.items())
            if program.derive
        ]
        device = regions.device
        staged = dict(regions.memory)
        reads = [self.sources(program) for program in programs]
        for index, program in enumerate(programs):
            self.progress("derive", index, len(programs))
            for region in sorted(reads[index] - staged.keys(), key=str):
                staged[region] = self.staged(region.name, device)
            present = replace(regions, memory=staged)
            make_ready(self.manifest, [program], present)
            run_once(program, self.manifest, present)
            for region in reads[index].difference(*reads[index + 1 :]):
                device.release(staged.pop(region))

    def held(self, name: str, held: Mapping[str, Memory]) -> Memory | None:
        """Memory that holds a weight already.

        Raises `WeightError`: it has another size.
        """
        memory, nbytes = held.get(name), self.plans[name].nbytes
        if memory is not None and memory.nbytes != nbytes:
            raise WeightError(
                f"weight `{name}` has {nbytes} bytes: expected as many where it lies already, "
                f"found {memory.nbytes}"
            )
        return memory

    def in_place(self, name: str, device: Device) -> Memory | None:
        """The buffer's bytes where the checkpoint maps them, if they can serve there."""
        run = self.plans[name].run
        if run is None:
            return None
        data = self.raw(run.tensor)[run.source : run.source + run.width]
        if data.ctypes.data % DTYPE_BYTES[self.manifest.buffers[name].dtype]:
            return None
        return device.adopt(data)

    def staged(self, name: str, device: Device) -> Memory:
        """The source's bytes where they lie, or in device memory of their own."""
        memory = self.in_place(name, device)
        if memory is None:
            memory = device.allocate(self.plans[name].nbytes)
            copies = uploads(self.plans[name], memory.address, self.stored)
            device.upload(tuple(copies), lambda _: None).wait()
        return memory

    def fill(self, device: Device, targets: Mapping[str, Memory], done: int) -> Arriving:
        """Copy buffers' bytes to where they go; `done` bytes of weights are in place already."""
        total = done + sum(memory.nbytes for memory in targets.values())
        self.progress("weights", done, total)
        copies = (
            copy
            for name, memory in targets.items()
            for copy in uploads(self.plans[name], memory.address, self.stored)
        )
        return device.upload(
            tuple(copies), lambda more: self.progress("weights", done + more, total)
        )

    def raw(self, tensor: str) -> NDArray[np.uint8]:
        """A tensor's bytes by its name."""
        return self.stored(tensor).view

    def stored(self, tensor: str) -> Stored:
        """A tensor's bytes by its name, and where a file has them.

        Raises `WeightError`: there is no checkpoint.
        """
        if self.checkpoint is None:
            raise WeightError(f"tensor `{tensor}` is in no checkpoint")
        info = self.checkpoint.tensors[tensor]
        return Stored(self.checkpoint.raw(info), self.checkpoint.file(info))

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
    regions.device.replay(capture, 1, ()).wait()


def _pointers(slots: tuple[Slot, ...]) -> Iterator[Pointer]:
    for slot in slots:
        for part in [f.slot for f in slot.fields] if isinstance(slot, PackSlot) else [slot]:
            if isinstance(part, Pointer):
                yield part
