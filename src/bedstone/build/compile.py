"""A compile: plan, compile the kernels a manifest uses, verify it, and write the package.

The same checkpoint, target, options and compiler give the same bytes. A package made for `run` is
kept in the cache under a name made from all of them, so a second run only finds it.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bedstone.build.identity import package_key, sources_digest
from bedstone.build.plan import Options, plan_manifest, served_context
from bedstone.build.report import report
from bedstone.build.write import write_directory
from bedstone.checkpoint.checkpoint import Checkpoint
from bedstone.checkpoint.reference import PACKAGE_PREFIX
from bedstone.errors import CallerError, TargetError
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
    parse_lock,
)
from bedstone.target.cpu import HARDWARE_SETS, choose, read_features
from bedstone.target.hardware import Hardware, read_hardware
from bedstone.target.toolchain import Compiler, Unit, compile_many, find_compiler
from bedstone.verify import verify

Progress = Callable[[str], None]
"""Told the name of each stage as it begins."""


@dataclass(frozen=True, slots=True)
class Package:
    """A directory that holds a verified manifest, its kernels and a lock."""

    path: Path
    lock: Lock


@dataclass(frozen=True, slots=True)
class Request:
    """A compile to be made: the checkpoint, what for (`auto` is this machine), and how."""

    checkpoint: Checkpoint
    options: Options
    cache: Path
    target: str = "auto"


def compile_checkpoint(request: Request, out: Path, progress: Progress) -> Package:
    """Compile into `out`; nothing is left there when it fails.

    Raises:
        CallerError: `out` holds something else, or an option is out of range.
        TargetError: This machine has no compiler, or cannot run the target.
    """
    hardware = read_hardware(_target_name(request.target))
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


def cached_package(request: Request, progress: Progress) -> Package:
    """The package of `request` in the cache, compiled where there is none yet."""
    key = package_key(
        request.checkpoint.identity,
        _stable_reference(request.checkpoint),
        _target_name(request.target),
        request.options.numerics,
        ",".join(request.options.held),
        str(served_context(request.checkpoint, request.options)),
        find_compiler().identity,
        sources_digest(),
    )
    out = request.cache / "packages" / key
    return (
        read_package(out) if (out / LOCK).exists() else compile_checkpoint(request, out, progress)
    )


def read_package(directory: Path) -> Package:
    """The package that a compile wrote into `directory`.

    Raises:
        CallerError: It holds none.
    """
    path = directory / LOCK
    try:
        text = path.read_bytes()
    except OSError as error:
        raise CallerError(f"`{directory}` is no package: `{LOCK}` cannot be read") from error
    return Package(directory, parse_lock(text, str(path)))


def _target_name(target: str) -> str:
    """The hardware set that `target` means on this machine."""
    here = choose(read_features())
    if target == "auto":
        return here
    names = [name for name, _ in HARDWARE_SETS]
    if target not in names:
        raise CallerError(f"no target `{target}`: expected `auto` or one of {names}")
    if names.index(target) < names.index(here):
        raise TargetError(
            f"target `{target}` needs CPU features this machine lacks: it runs `{here}`"
        )
    return target


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
        checkpoint=_stable_reference(request.checkpoint),
        identity=request.checkpoint.identity,
        target=_target_name(request.target),
        numerics=request.options.numerics,
        context=served_context(request.checkpoint, request.options),
        compiler=compiler.identity,
        sources=sources_digest(),
        modules={name: module.sha256 for name, module in manifest.modules.items()},
    )


def _stable_reference(checkpoint: Checkpoint) -> str:
    """The reference as it will still mean the same from another directory."""
    if checkpoint.reference.startswith(PACKAGE_PREFIX):
        return checkpoint.reference
    return str(checkpoint.path.resolve())
