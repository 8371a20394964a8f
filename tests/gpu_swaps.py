"""A package for a GPU with one kernel's source edited and its module compiled anew."""

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

from bedstone.build.kernels import modules_of
from bedstone.build.lane import target_lane
from bedstone.spec.codec import parse, serialize
from bedstone.spec.manifest import Module
from bedstone.target.hardware import read_sets
from bedstone.target.nvrtc import compile_cubins, find_nvrtc
from bedstone.target.sources import read_sources

Edit = tuple[str, str, str]
"""A source's name, text in it, and what to put in its place."""


def rebuilt(package: Path, out: Path, target: str, module: str, *edits: Edit) -> Path:
    """`package` copied to `out`, `module` of its float kernels compiled with the `edits` made."""
    manifest = parse((package / "manifest.json").read_bytes())
    hardware = read_sets()[target]
    kernel = modules_of(target_lane(target, "precise").kernels.kernels.values())[module]
    unit = read_sources(hardware).unit(kernel.source, kernel.defines)
    sources = out.with_suffix(".sources")
    sources.mkdir(parents=True)
    for folder in reversed(unit.include):
        for path in (*folder.glob("*.cu"), *folder.glob("*.cuh")):
            shutil.copyfile(path, sources / path.name)
    for name, old, new in edits:
        text = (sources / name).read_text()
        assert old in text
        (sources / name).write_text(text.replace(old, new))
    here = replace(unit, sources=(sources / unit.sources[0].name,), include=(sources,))
    (built,) = compile_cubins([here], hardware.arch, cache=sources / "built", nvrtc=find_nvrtc())
    data = built.read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    shutil.copytree(package, out)
    label = f"{module}-{sha256[:12]}.cubin"
    (out / "kernels" / label).write_bytes(data)
    modules = {**manifest.modules, module: Module(label, sha256)}
    (out / "manifest.json").write_text(serialize(replace(manifest, modules=modules)))
    return out
