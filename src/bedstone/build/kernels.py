"""A target's modules, compiled, and audited against all that may be asked of them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import get_args

from bedstone.build.lane import lane_of
from bedstone.errors import KernelError
from bedstone.lane.lookups import lookups
from bedstone.lane.schedule import Numerics
from bedstone.library.kernel import Kernel, KernelSet, Stage
from bedstone.spec.manifest import KernelLaunch, Manifest
from bedstone.spec.param import param_bytes
from bedstone.target.audit import Built, Finding, Wanted, audit, failures
from bedstone.target.blob import Blob, read_blob
from bedstone.target.cubin import spelled_sizes
from bedstone.target.hardware import HardwareSet
from bedstone.target.nvrtc import compile_cubins, find_nvrtc
from bedstone.target.side_by_side import Told, untold
from bedstone.target.sources import Sources
from bedstone.target.toolchain import Unit, compile_many, find_compiler
from bedstone.target.triton import compile_triton, find_triton

EMITTED = ("cast_f16_f32", "cast_bf16_f32", "rope_table")
"""The entries that a manifest calls beside those of the lane's schedules."""


def catalogs(hardware: HardwareSet) -> tuple[KernelSet, ...]:
    """The kernels that the library has for a hardware set, as each numerics takes them."""
    return tuple(lane_of(hardware, numerics).kernels for numerics in get_args(Numerics))


@dataclass(frozen=True, slots=True)
class Compiled:
    """Modules by label: their bytes, and what those are."""

    objects: Mapping[str, bytes]
    built: Built


def compile_modules(
    sources: Sources, modules: Mapping[str, Kernel], cache: Path, told: Told = untold
) -> Compiled:
    """Compile a kernel of each module, and of each that a nearer file hides.

    A source that does not compile, or a module that needs more than its set declares, is a
    `KernelError`; a machine without the compiler a `TargetError`.
    """
    hidden = {
        label: unit
        for label, kernel in modules.items()
        if (unit := sources.hidden_unit(kernel.source, kernel.defines)) is not None
    }
    own = {label: sources.unit(k.source, k.defines) for label, k in modules.items()}
    paths = _compile((*own.values(), *hidden.values()), sources.hardware, cache, told)
    objects = {label: path.read_bytes() for label, path in zip(own, paths, strict=False)}
    hiding = zip(hidden, paths[len(own) :], strict=True)
    built = Built(
        {label: _blob(label, data, sources.hardware) for label, data in objects.items()},
        {label: _blob(label, path.read_bytes(), sources.hardware) for label, path in hiding},
    )
    return Compiled(objects, built)


def modules_of(kernels: Iterable[Kernel]) -> dict[str, Kernel]:
    """A kernel of each module, by the module's label."""
    return {kernel.module: kernel for kernel in kernels}


def audit_sources(sources: Sources, built: Built) -> list[Finding]:
    """What a target has of everything the lane and the manifest may ask for under any numerics."""
    asked = {wanted: None for held in catalogs(sources.hardware) for wanted in _asked(held)}
    return audit(asked, built, sources.absences())


def require_kernels(manifest: Manifest, built: Built, kernels: KernelSet) -> list[Finding]:
    """A finding for each entry the manifest calls; one that is not found is a `KernelError`."""
    findings = audit(_called(manifest, kernels), built, ())
    failed = failures(findings)
    if failed:
        raise KernelError("\n".join(map(str, failed)))
    return findings


def _asked(kernels: KernelSet) -> Iterator[Wanted]:
    for lookup in lookups(kernels.coding):
        kernel = kernels.get(lookup.entry)
        wanted = _wanted(lookup.entry, lookup.asker, lookup.without, kernel)
        yield replace(wanted, forms=lookup.forms)
    for entry in EMITTED:
        yield _wanted(entry, "the manifest", None, kernels.get(entry))
    for join in kernels.joins.values():
        kernel = join.kernel
        yield _wanted(kernel.entry, join.kind, "its launches stay apart", kernel)


def _called(manifest: Manifest, kernels: KernelSet) -> Iterator[Wanted]:
    launches = {
        (launch.module, launch.entry): name
        for name, op in manifest.ops.items()
        for launch in op.impl.launches
        if isinstance(launch, KernelLaunch)
    }
    functions = {
        (kernel.module, stage.entry): (kernel, stage)
        for kernel in kernels.every
        for stage in kernel.launches
    }
    for (module, entry), op in launches.items():
        kernel, stage = functions.get((module, entry), (None, None))
        yield _wanted(entry, op, None, kernel, stage)


def _wanted(
    entry: str,
    asker: str,
    without: str | None,
    kernel: Kernel | None,
    stage: Stage | None = None,
) -> Wanted:
    if kernel is None:
        return Wanted(entry, asker, without, None, None)
    launched = stage or kernel.launches[0]
    return Wanted(launched.entry, asker, without, kernel.module, _stated(kernel, launched))


def _stated(kernel: Kernel, stage: Stage) -> str:
    """What a module should state of a kernel's parameters: types in C, in CUDA their bytes."""
    if kernel.source.endswith(".c"):
        return stage.abi
    return spelled_sizes(param_bytes(param.type) for param in stage.params)


def _compile(
    units: tuple[Unit, ...], hardware: HardwareSet, cache: Path, told: Told
) -> tuple[Path, ...]:
    alike: dict[str, list[int]] = {}
    for at, unit in enumerate(units):
        alike.setdefault(unit.sources[0].suffix, []).append(at)
    made: dict[int, Path] = {}
    for places in alike.values():
        ahead = partial(_further, told, len(made), len(units))
        paths = _compile_alike([units[at] for at in places], hardware, cache, ahead)
        made.update(zip(places, paths, strict=True))
    return tuple(made[at] for at in range(len(units)))


def _further(told: Told, before: int, total: int, done: int, _: int) -> None:
    """Tell of what is done of all languages' units, where a compiler tells of its own."""
    told(before + done, total)


def _compile_alike(
    units: list[Unit], hardware: HardwareSet, cache: Path, told: Told
) -> tuple[Path, ...]:
    """Compile sources of one language, by the compiler for it."""
    source = units[0].sources[0]
    match hardware.vendor, source.suffix:
        case "cpu", ".c":
            return compile_many(units, cache=cache, compiler=find_compiler(), told=told)
        case "nvidia", ".cu":
            return compile_cubins(units, hardware.arch, cache=cache, nvrtc=find_nvrtc(), told=told)
        case "nvidia", ".py":
            return compile_triton(
                units, hardware.arch, cache=cache, triton=find_triton(), told=told
            )
        case _:
            raise KernelError(
                f"`{source.name}` is no source for hardware set `{hardware.name}` of vendor "
                f"`{hardware.vendor}`"
            )


def _blob(label: str, data: bytes, hardware: HardwareSet) -> Blob:
    blob = read_blob(label, data, hardware.arch)
    beyond = blob.needs - hardware.features
    if beyond:
        raise KernelError(
            f"module `{label}` was compiled for {', '.join(sorted(beyond))}, which hardware set "
            f"`{hardware.name}` does not declare: add to its features, or take the flag away"
        )
    return blob
