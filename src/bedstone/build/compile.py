"""A compile: plan, compile the kernels a manifest uses, verify it, and write the package.

The same checkpoint, target, options and compiler give the same bytes.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from bedstone.build.compiler import compiler_identity
from bedstone.build.emit import PAGE
from bedstone.build.identity import sources_digest
from bedstone.build.kernels import Compiled, require_kernels
from bedstone.build.lane import lane_of
from bedstone.build.launches import calls
from bedstone.build.picks import compile_picked
from bedstone.build.plan import plan_manifest
from bedstone.build.report import report
from bedstone.build.request import Package, Request, served_context
from bedstone.build.route import Route, route
from bedstone.build.write import require_replaceable, write_directory
from bedstone.library.kernel import KernelSet
from bedstone.runtime.verdict import recalled
from bedstone.spec.codec import parse, serialize
from bedstone.spec.manifest import Manifest, Module
from bedstone.spec.package import (
    KERNELS,
    LOCK,
    MANIFEST,
    PLAN,
    TARGET,
    TOKENIZER,
    Lock,
    Target,
    emit_json,
    emit_lock,
)
from bedstone.spec.release import VERSION
from bedstone.spec.sampling import SAMPLING, Knobs, emit_knobs
from bedstone.target.architecture import Form
from bedstone.target.blob import kernel_set_hash
from bedstone.verify.sampling import require_knobs

SUFFIXES: dict[Form, str] = {"shared_object": ".so", "cubin": ".cubin", "ptx": ".ptx"}
"""How files end that hold a module of each form."""

Progress = Callable[[str], None]
"""Told the name of each stage as it begins."""


def compile_checkpoint(request: Request, out: Path, progress: Progress) -> Package:
    """Compile into `out`; nothing is left there when it fails.

    Raises `CallerError`: `out` holds something else, or an option is out of range; `TargetError`:
    this machine has no compiler, or cannot run the target.
    """
    require_replaceable(out, LOCK)
    served = route(request.checkpoint, request.target)
    compiler = compiler_identity(served.hardware.vendor)
    lane = lane_of(served.hardware, request.options.numerics)
    progress("plan")
    forms, emission = plan_manifest(request.checkpoint, request.options, lane, request.picks)
    progress("kernels")
    cache = request.cache / "modules"
    compiled = compile_picked(served.sources, emission.modules, emission.picked, cache)
    manifest = _pinned(emission.manifest, compiled)
    progress("audit")
    target = _target(served, compiled, manifest, lane.kernels)
    progress("verify")
    text = serialize(manifest).encode()
    # a first load of the package finds the verdict, where it looks in the same cache
    recalled(parse(text), text, request.cache)
    sampling = _sampling(emission.knobs, manifest)
    lock = _lock(request, served.hardware.name, manifest, compiler, sampling)
    progress("write")
    files = {
        MANIFEST: text,
        TOKENIZER: request.checkpoint.tokenizer.to_json().encode(),
        PLAN: emit_json(
            {
                name: report(schedule, calls(schedule, lane.kernels, lock.context))
                for name, schedule in forms.each()
            }
        ),
        TARGET: emit_json(target),
        LOCK: emit_lock(lock),
        **sampling,
        **{
            f"{KERNELS}/{manifest.modules[name].source}": data
            for name, data in compiled.objects.items()
        },
    }
    write_directory(out, files, owned=LOCK)
    return Package(out, lock)


def _pinned(manifest: Manifest, compiled: Compiled) -> Manifest:
    """The manifest with each module pinned to the bytes it was compiled to."""
    modules: dict[str, Module] = {}
    for label, data in compiled.objects.items():
        sha256 = hashlib.sha256(data).hexdigest()
        suffix = SUFFIXES[compiled.built.blobs[label].form]
        modules[label] = Module(f"{label}-{sha256[:12]}{suffix}", sha256)
    return replace(manifest, modules=modules)


def _target(served: Route, compiled: Compiled, manifest: Manifest, kernels: KernelSet) -> Target:
    """What the package is for, once every entry the manifest calls is found in its modules."""
    findings = require_kernels(manifest, compiled.built, kernels)
    return Target(
        hardware=served.hardware.name,
        arch=served.hardware.arch,
        features=tuple(sorted(served.hardware.features)),
        model=served.model.name,
        quantization=served.quantization,
        borrowed=served.resolution.borrowed,
        kernel_set=kernel_set_hash(compiled.built.blobs.values()),
        modules={name: blob.fact for name, blob in sorted(compiled.built.blobs.items())},
        found={finding.entry: finding.module or "" for finding in findings},
        policy=served.model.record.policy,
    )


def _sampling(knobs: Knobs | None, manifest: Manifest) -> dict[str, bytes]:
    """The record of a sampler, its buffers judged as a reader will judge them."""
    if knobs is None:
        return {}
    require_knobs(knobs, manifest)
    return {SAMPLING: emit_knobs(knobs)}


def _lock(
    request: Request, target: str, manifest: Manifest, compiler: str, sampling: Mapping[str, bytes]
) -> Lock:
    return Lock(
        bedstone=VERSION,
        checkpoint=request.reference,
        identity=request.checkpoint.identity,
        target=target,
        numerics=request.options.numerics,
        context=served_context(request.checkpoint, request.options),
        sequences=request.options.sequences,
        page=PAGE,
        compiler=compiler,
        sources=sources_digest(),
        modules={name: module.sha256 for name, module in manifest.modules.items()},
        sampling=next((hashlib.sha256(text).hexdigest() for text in sampling.values()), None),
    )
