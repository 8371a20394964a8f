"""A compile: plan, compile the kernels a manifest uses, verify it, and write the package.

The same checkpoint, target, options and compiler give the same bytes.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from bedstone.build.emit import PAGE
from bedstone.build.identity import sources_digest
from bedstone.build.plan import plan_manifest
from bedstone.build.report import report
from bedstone.build.request import Package, Request, served_context
from bedstone.build.write import write_directory
from bedstone.library.kernel import Kernel
from bedstone.spec.codec import serialize
from bedstone.spec.manifest import Manifest, Module
from bedstone.spec.package import (
    KERNELS,
    LOCK,
    MANIFEST,
    PLAN,
    TOKENIZER,
    Lock,
    emit_json,
    emit_lock,
)
from bedstone.spec.release import VERSION
from bedstone.target.hardware import Hardware, read_hardware
from bedstone.target.toolchain import Compiler, Unit, compile_many, find_compiler
from bedstone.verify import verify

Progress = Callable[[str], None]
"""Told the name of each stage as it begins."""


def compile_checkpoint(request: Request, out: Path, progress: Progress) -> Package:
    """Compile into `out`; nothing is left there when it fails.

    Raises `CallerError`: `out` holds something else, or an option is out of range; `TargetError`:
    this machine has no compiler, or cannot run the target.
    """
    hardware = read_hardware(request.hardware)
    compiler = find_compiler()
    progress("plan")
    forms, emission = plan_manifest(request.checkpoint, request.options)
    progress("kernels")
    objects = _compile_modules(emission.modules, hardware, compiler, request.cache / "modules")
    manifest = _pinned(emission.manifest, objects)
    progress("verify")
    verify(manifest)
    lock = _lock(request, manifest, compiler)
    progress("write")
    files = {
        MANIFEST: serialize(manifest).encode(),
        TOKENIZER: request.checkpoint.tokenizer.to_json().encode(),
        PLAN: emit_json({"decode": report(forms.decode), "chunk": report(forms.chunk)}),
        LOCK: emit_lock(lock),
        **{f"{KERNELS}/{manifest.modules[name].source}": data for name, data in objects.items()},
    }
    write_directory(out, files, owned=LOCK)
    return Package(out, lock)


def _compile_modules(
    modules: Mapping[str, Kernel], hardware: Hardware, compiler: Compiler, cache: Path
) -> dict[str, bytes]:
    """The bytes of each module, by label."""
    units = [
        Unit(
            sources=(hardware.source(kernel.source),),
            flags=hardware.flags,
            defines=kernel.defines,
            include=hardware.folders,
        )
        for kernel in modules.values()
    ]
    paths = compile_many(units, cache=cache, compiler=compiler)
    return {label: path.read_bytes() for label, path in zip(modules, paths, strict=True)}


def _pinned(manifest: Manifest, objects: Mapping[str, bytes]) -> Manifest:
    """The manifest with each module pinned to the bytes it was compiled to."""
    hashes = {label: hashlib.sha256(data).hexdigest() for label, data in objects.items()}
    modules = {
        label: Module(f"{label}-{sha256[:12]}.so", sha256) for label, sha256 in hashes.items()
    }
    return replace(manifest, modules=modules)


def _lock(request: Request, manifest: Manifest, compiler: Compiler) -> Lock:
    return Lock(
        bedstone=VERSION,
        checkpoint=request.reference,
        identity=request.checkpoint.identity,
        target=request.hardware,
        numerics=request.options.numerics,
        context=served_context(request.checkpoint, request.options),
        page=PAGE,
        compiler=compiler.identity,
        sources=sources_digest(),
        modules={name: module.sha256 for name, module in manifest.modules.items()},
    )
