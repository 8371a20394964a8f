"""From a package to a session.

The order is part of the contract: verify or recall the verdict, modules, whether they and the rank
groups fit here, ABI, where weights come from, buffers, weights, lowering, `derive` programs, states
from what memory is left, `once` programs. Whatever fails does so before the next step takes memory,
and leaves no thread behind.
"""

import gc
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal, NotRequired, Protocol, TypedDict, Unpack

from bedstone.checkpoint.reference import open_checkpoint, require_identity
from bedstone.errors import CallerError, ManifestError
from bedstone.runtime.bind import Progress, plan_binding
from bedstone.runtime.cpu.device import CpuDevice
from bedstone.runtime.device import Device, Memory
from bedstone.runtime.executor import Loaded
from bedstone.runtime.fit import Ranks, own_indices, require_fit
from bedstone.runtime.image import build_image
from bedstone.runtime.lower import LoweredProgram, lower
from bedstone.runtime.memory import plan_capacity
from bedstone.runtime.modules import resolve_modules
from bedstone.runtime.program import LoadedProgram
from bedstone.runtime.regions import (
    Regions,
    allocate_regions,
    allocate_states,
    kept_exchange,
    make_ready,
    require_one_process,
    resolve_functions,
    with_exchange,
)
from bedstone.runtime.session import Session
from bedstone.runtime.verdict import judged, recalled
from bedstone.runtime.weights import Checkpoint
from bedstone.spec.codec import parse
from bedstone.spec.fault import ParseError
from bedstone.spec.file import read_bounded
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Manifest
from bedstone.spec.package import KERNELS, LOCK, MANIFEST, Lock, parse_lock
from bedstone.spec.sampling import SAMPLING, Knobs, parse_knobs
from bedstone.target.cache import user_cache
from bedstone.verify.sampling import require_knobs
from bedstone.verify.verified import Verified

DeviceName = Literal["cpu", "cuda", "null"]


class Parts(Frozen):
    """A package in pieces: the manifest, the folder of its modules, and its checkpoint.

    `identity` is what the checkpoint's must be; None accepts any. `knobs` is the record of the
    manifest's sampler, where it has one.
    """

    manifest: Manifest
    kernels: Path | None = None
    checkpoint: str | None = None
    identity: str | None = None
    knobs: Knobs | None = None


class LoadOptions(TypedDict):
    """How to load; every one has a default.

    `gpu` is the number of the one that `cuda` uses. `cache` keeps compiled parts of the runtime and
    verdicts on manifests.
    `threads` None is one a core, `tokens` None what the page tables of `sequences` sequences reach,
    as far as memory goes. `checkpoint` (a reference or one that is open) takes the place of the
    package's own. `ranks` is this process's (index, size) in each rank group. `weights` is memory
    of the device that holds weights already, by their buffers' names: they are used where they lie,
    and are the caller's to keep for as long. With `remaps` memory can go from paged states to
    per-sequence ones and back, as a pool asks for it.
    """

    device: NotRequired[DeviceName]
    gpu: NotRequired[int]
    cache: NotRequired["str | Path"]
    threads: NotRequired[int | None]
    tokens: NotRequired[int | None]
    sequences: NotRequired[int]
    checkpoint: NotRequired["str | Path | Checkpoint | None"]
    ranks: NotRequired[Ranks]
    weights: NotRequired[Mapping[str, Memory]]
    remaps: NotRequired[bool]
    progress: NotRequired[Progress]


class Packaged(Protocol):
    """What stands for the package that lies at `path`, as the result of a compile does."""

    @property
    def path(self) -> Path:
        """The package's directory."""


def load(package: "str | Path | Packaged | Parts", **options: Unpack[LoadOptions]) -> Session:
    """A session of `package`, where it lies or its parts, with its weights in memory.

    Raises `ManifestError`: the manifest does not parse or breaks a rule.
    Raises `KernelError`: a module is missing, changed or of another ABI.
    Raises `WeightError`: the checkpoint is not the one, lacks a tensor or has it in another form.
    Raises `CallerError`: an option does not fit the manifest.
    Raises `CapacityError`: memory does not suffice.
    Raises `TargetError`: the machine lacks what the device needs.
    """
    unknown = options.keys() - LoadOptions.__optional_keys__
    if unknown:
        known = ", ".join(f"`{name}`" for name in sorted(LoadOptions.__optional_keys__))
        raise CallerError(f"a load takes no `{min(unknown)}`: expected some of {known}")
    with _collector_at_rest():
        return _session(package, options)


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """What loading makes is kept and holds no cycles: looking for some is a tenth of the time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _session(package: "str | Path | Packaged | Parts", options: LoadOptions) -> Session:
    progress = options.get("progress", _silent)
    progress("verify", 0, 1)
    if isinstance(package, Parts):
        parts, verified = package, judged(package.manifest)
    else:
        parts, text = _read(_directory(package))
        verified = recalled(parts.manifest, text, _cache(options))
    progress("verify", 1, 1)
    require_one_process(verified.manifest)
    if parts.knobs is not None:
        require_knobs(parts.knobs, verified.manifest)
    device = _open_device(options)
    try:
        return Session(_load(verified, parts, device, options))
    except BaseException:  # an interrupt too must not leave the device's threads behind
        device.close()
        raise


def _directory(package: "str | Path | Packaged") -> Path:
    return Path(package) if isinstance(package, str | Path) else package.path


def _cache(options: LoadOptions) -> Path | None:
    """Where to keep what may be kept; None where nobody says and the user has no home."""
    cache = options.get("cache")
    try:
        return Path(cache) if cache is not None else user_cache()
    except CallerError:
        return None


def read_parts(directory: Path) -> Parts:
    """The parts of a package directory.

    Raises `CallerError`: there is no manifest in it.
    """
    return _read(directory)[0]


def _read(directory: Path) -> tuple[Parts, bytes]:
    """The parts of a package directory, and the text of its manifest."""
    manifest_path, lock_path = directory / MANIFEST, directory / LOCK
    if not os.path.exists(manifest_path):
        raise CallerError(f"`{directory}` is no package: `{MANIFEST}` cannot be found in it")
    text = read_bounded(manifest_path)
    manifest = parse_manifest(text, str(manifest_path))
    if not os.path.exists(lock_path):
        return Parts(manifest, directory / KERNELS, knobs=_knobs(directory / SAMPLING)), text
    lock = parse_lock(read_bounded(lock_path), str(lock_path))
    knobs = _knobs(directory / SAMPLING, lock)
    return Parts(manifest, directory / KERNELS, lock.checkpoint, lock.identity, knobs), text


def parse_manifest(text: bytes, where: str) -> Manifest:
    """The manifest that a file holds.

    Raises `ManifestError`: it holds none; the message names it.
    """
    try:
        return parse(text)
    except ParseError as error:
        raise ManifestError(f"`{where}`: {error}") from error


def _knobs(path: Path, lock: Lock | None = None) -> Knobs | None:
    """The record of a sampler; where there is a lock, the one that it names and no other.

    Raises `ManifestError`: it is not that one.
    """
    text = read_bounded(path) if os.path.exists(path) else None
    found = None if text is None else hashlib.sha256(text).hexdigest()
    if lock is not None and found != lock.sampling:
        wanted = "no such file" if lock.sampling is None else f"sha256 {lock.sampling}"
        there = "none" if found is None else f"sha256 {found}"
        raise ManifestError(f"`{path}` is not what the lock says: expected {wanted}, found {there}")
    return None if text is None else parse_knobs(text, str(path))


def _load(
    verified: Verified,
    parts: Parts,
    device: Device,
    options: LoadOptions,
) -> Loaded:
    manifest, progress = verified.manifest, options.get("progress", _silent)
    artifacts = resolve_modules(manifest.modules, parts.kernels, partial(progress, "modules"))
    require_fit(manifest, options.get("ranks"), device.misfits(artifacts.values()))
    ranks = own_indices(manifest, options.get("ranks"))
    regions = Regions(device, resolve_functions(manifest, artifacts, device))
    with _checkpoint(manifest, parts, options.get("checkpoint")) as checkpoint:
        binder = plan_binding(manifest, checkpoint, ranks, progress)
        regions.memory.update(allocate_regions(manifest, device))
        with binder.bind_weights(regions, options.get("weights", {})) as (in_place, arriving):
            # no address is needed to lower, so weights arrive meanwhile
            lowered = _lowered(manifest, ranks)
            arriving.wait()
        # a system may count memory as free until it is written
        binder.run_derived(regions)
        capacity = plan_capacity(
            manifest,
            options.get("tokens"),
            options.get("sequences", 1),
            device.free_bytes() - in_place,
            device.granule,
        )
        if options.get("remaps", False):
            capacity = with_exchange(manifest, capacity, device)
        states = allocate_states(manifest, capacity, device)
        capacity = kept_exchange(capacity, states)
        regions.memory.update(states)
        programs = _link(manifest, lowered, regions)
    loaded = Loaded(verified, device, regions.memory, programs, capacity, parts.knobs)
    _run_once(loaded, progress)
    return loaded


def _lowered(manifest: Manifest, ranks: Mapping[str, int]) -> list[LoweredProgram]:
    """Every program a caller may run; those of loading are gone after it."""
    return [
        lower(manifest, name, ranks)
        for name, program in sorted(manifest.programs.items())
        if not program.derive
    ]


def _link(
    manifest: Manifest, lowered: Sequence[LoweredProgram], regions: Regions
) -> dict[str, LoadedProgram]:
    make_ready(manifest, lowered, regions)
    linker = regions.linker()
    return {
        program.name: LoadedProgram(program, build_image(program, linker), manifest.vars)
        for program in lowered
    }


def _run_once(loaded: Loaded, progress: Progress) -> None:
    manifest = loaded.verified.manifest
    names = sorted(name for name, program in manifest.programs.items() if program.once)
    for index, name in enumerate(names):
        progress("once", index, len(names))
        capture = loaded.programs[name].capture(dict.fromkeys(manifest.vars, 1))
        loaded.device.replay(capture, 1, ()).wait()


@contextmanager
def _checkpoint(
    manifest: Manifest, parts: Parts, given: str | Path | Checkpoint | None
) -> Iterator[Checkpoint | None]:
    """The checkpoint to bind from, closed afterwards if it was opened here.

    Bytes in use stay mapped whatever is closed.
    """
    if not any(buffer.kind in {"weight", "source"} for buffer in manifest.buffers.values()):
        yield None
        return
    reference = given if given is not None else parts.checkpoint
    if reference is None:
        raise CallerError(
            f"manifest `{manifest.model}` binds weights, and no checkpoint was given for them"
        )
    if not isinstance(reference, str | Path):
        yield reference
        return
    opened = open_checkpoint(str(reference))
    try:
        if parts.identity is not None:
            require_identity(opened, parts.identity, "the package")
        yield opened
    finally:
        opened.close()


def _open_device(options: LoadOptions) -> Device:
    name = options.get("device", "cpu")
    if name not in _DEVICES:
        raise CallerError(f"no device `{name}`: expected one of {', '.join(_DEVICES)}")
    return _DEVICES[name](options)


def _open_cpu(options: LoadOptions) -> Device:
    cache = options.get("cache")
    kept = Path(cache) if cache is not None else user_cache()
    return CpuDevice(kept / "runtime", options.get("threads"))


def _open_cuda(options: LoadOptions) -> Device:
    from bedstone.runtime.cuda.bindings import open_driver  # noqa: PLC0415 - slow to load
    from bedstone.runtime.cuda.device import CudaDevice  # noqa: PLC0415 - as above

    return CudaDevice(open_driver(options.get("gpu", 0)))


def _open_null(_options: LoadOptions) -> Device:
    from bedstone.runtime.null import NullDevice  # noqa: PLC0415 - for tests of a load

    return NullDevice()


def _silent(_stage: str, _done: int, _total: int) -> None:
    """Progress nobody asked for."""


_DEVICES: dict[DeviceName, Callable[[LoadOptions], Device]] = {
    "cpu": _open_cpu,
    "cuda": _open_cuda,
    "null": _open_null,
}
