"""A compiled package with one kernel's source edited and its module built anew."""

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

from bedstone.build.kernels import modules_of
from bedstone.build.lane import lane_of
from bedstone.spec.codec import parse, serialize
from bedstone.spec.manifest import Module
from bedstone.target.cpu import choose
from bedstone.target.features import read_features
from bedstone.target.hardware import read_sets
from bedstone.target.sources import read_sources
from bedstone.target.toolchain import compile_many, find_compiler

Edit = tuple[str, str, str]
"""A source's name, text in it, and what to put in its place."""


def rebuilt(package: Path, out: Path, module: str, *edits: Edit) -> Path:
    """`package` copied to `out`, `module` compiled from sources with the `edits` made."""
    manifest = parse((package / "manifest.json").read_bytes())
    hardware = choose("auto", read_sets(), read_features())
    kernel = modules_of(lane_of(hardware, "precise").kernels.kernels.values())[module]
    unit = read_sources(hardware).unit(kernel.source, kernel.defines)
    sources = out.with_suffix(".sources")
    sources.mkdir(parents=True)
    for folder in reversed(unit.include):
        for path in (*folder.glob("*.c"), *folder.glob("*.h")):
            shutil.copyfile(path, sources / path.name)
    for name, old, new in edits:
        text = (sources / name).read_text()
        assert old in text
        (sources / name).write_text(text.replace(old, new))
    here = replace(unit, sources=(sources / kernel.source,), include=(sources,))
    (built,) = compile_many([here], cache=sources / "built", compiler=find_compiler())
    data = built.read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    shutil.copytree(package, out)
    label = f"{module}-{sha256[:12]}.so"
    (out / "kernels" / label).write_bytes(data)
    modules = {**manifest.modules, module: Module(label, sha256)}
    (out / "manifest.json").write_text(serialize(replace(manifest, modules=modules)))
    return out
