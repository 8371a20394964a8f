"""A package for a GPU with one kernel's source edited and its module compiled anew."""

from pathlib import Path

from bedstone.build.kernels import modules_of
from bedstone.build.lane import target_lane
from bedstone.spec.codec import parse
from bedstone.target.hardware import read_sets
from bedstone.target.nvrtc import compile_cubins, find_nvrtc
from bedstone.target.sources import read_sources
from swaps import Edit, edited, replaced


def rebuilt(package: Path, out: Path, target: str, module: str, *edits: Edit) -> Path:
    """`package` copied to `out`, `module` of its float kernels compiled with the `edits` made."""
    manifest = parse((package / "manifest.json").read_bytes())
    hardware = read_sets()[target]
    kernel = modules_of(target_lane(target, "precise").kernels.kernels.values())[module]
    unit = read_sources(hardware).unit(kernel.source, kernel.defines)
    here = edited(unit, out.with_suffix(".sources"), edits, (".cu", ".cuh"))
    cache = here.include[0] / "built"
    (built,) = compile_cubins([here], hardware.arch, cache=cache, nvrtc=find_nvrtc())
    return replaced(package, out, manifest, module, built)
