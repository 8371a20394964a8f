"""A compiled package with one kernel's source edited and its module built anew."""

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import torch

from bedstone.build.kernels import modules_of
from bedstone.build.lane import lane_of
from bedstone.lane.schedule import Numerics
from bedstone.spec.codec import parse, serialize
from bedstone.spec.manifest import Manifest, Module
from bedstone.target.cpu import choose
from bedstone.target.features import read_features
from bedstone.target.hardware import read_sets
from bedstone.target.sources import read_sources
from bedstone.target.toolchain import Unit, compile_many, find_compiler
from letters import write_tokenizer
from tiny_models import write_tiny

Edit = tuple[str, str, str]
"""A source's name, text in it, and what to put in its place."""


def rebuilt(
    package: Path, out: Path, module: str, *edits: Edit, numerics: Numerics = "precise"
) -> Path:
    """`package` copied to `out`, `module` compiled from sources with the `edits` made."""
    manifest = parse((package / "manifest.json").read_bytes())
    hardware = choose("auto", read_sets(), read_features())
    kernel = modules_of(lane_of(hardware, numerics).kernels.kernels.values())[module]
    unit = read_sources(hardware).unit(kernel.source, kernel.defines)
    here = edited(unit, out.with_suffix(".sources"), edits, (".c", ".h"))
    (built,) = compile_many([here], cache=here.include[0] / "built", compiler=find_compiler())
    return replaced(package, out, manifest, module, built)


def edited(unit: Unit, sources: Path, edits: tuple[Edit, ...], endings: tuple[str, str]) -> Unit:
    """`unit` as it is compiled from a copy of its sources in which the `edits` are made."""
    sources.mkdir(parents=True)
    for folder in reversed(unit.include):
        for path in (path for ending in endings for path in folder.glob(f"*{ending}")):
            shutil.copyfile(path, sources / path.name)
    for name, old, new in edits:
        text = (sources / name).read_text()
        assert old in text
        (sources / name).write_text(text.replace(old, new))
    return replace(unit, sources=(sources / unit.sources[0].name,), include=(sources,))


def replaced(package: Path, out: Path, manifest: Manifest, module: str, built: Path) -> Path:
    """`package` copied to `out` with what was `built` as its `module`."""
    data = built.read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    shutil.copytree(package, out)
    label = f"{module}-{sha256[:12]}{built.suffix}"
    (out / "kernels" / label).write_bytes(data)
    modules = {**manifest.modules, module: Module(label, sha256)}
    (out / "manifest.json").write_text(serialize(replace(manifest, modules=modules)))
    return out


def write_model(folder: Path, context: int) -> str:
    """A llama of a long context whose norms have a weight of zero: zeros of both signs occur."""
    model = write_tiny("llama", folder)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "layernorm" in name:
                weight[3] = 0.0
    model.config.max_position_embeddings = context
    model.save_pretrained(folder)
    write_tokenizer(folder)
    return str(folder)
