"""CUDA kernels against their Definitions: the reference in float64, its own inputs, its judge."""

import re
from operator import itemgetter

import pytest
import torch

from bedstone.library.mathematics import define, family_of
from bedstone.prove.inputs.workload import Inputs
from bedstone.prove.lazy import Trial
from bedstone.prove.reference import Reference
from bedstone.spec.workload import Workload
from bedstone.target.hardware import read_sets
from bedstone.target.nvrtc import compile_cubins, find_nvrtc
from bedstone.target.sources import read_sources
from gpu_judged import judged
from kernels.gpu_library import GpuLibrary

PARTS = 8
"""Of all kernels, so that processes can share them."""


@pytest.fixture(scope="module", params=["f32", "bf16"])
def library(request, cache):
    made = GpuLibrary("hopper", cache / "modules", request.param)
    compile_all(made, {name for name, _, _ in every_case(made.kernels)})
    return made


def compile_all(library, names):
    """Compile what is tried side by side, and nothing else of the same sources."""
    sources, kernels = read_sources(read_sets()[library.hardware]), dict(library.kernels.named)
    modules = {kernels[name].module: kernels[name] for name in names}
    units = [sources.unit(k.source, k.defines) for k in modules.values()]
    arch = read_sets()[library.hardware].arch
    compile_cubins(units, arch, cache=library.cache, nvrtc=find_nvrtc())
    library.compiled = True


def every_case(kernels):
    """Every kernel with its entry, at sizes that it is for."""
    for entry in kernels.kernels.keys() - {
        n for rows in kernels.variants.values() for n, _ in rows
    }:
        sizes = {**family_of(entry).defaults, **family_of(entry).sizes}
        yield entry, entry, sizes
        for name, suits in kernels.variants.get(entry, ()):
            own = sizes | suiting(name.removeprefix(entry), sizes)
            if suits(own, kernels.cache):
                yield name, entry, own
    for name, join in kernels.joins.items():
        entry = join.kernel.entry
        sizes = {**family_of(entry).defaults, **family_of(entry).sizes}
        rows = {size: sizes[size] for size in ("rows",) if size in sizes}
        own = {**sizes, **suiting(name.removeprefix(entry), sizes), **rows}
        if join.suits(own, kernels.cache):
            yield name, entry, own


def suiting(suffix, sizes):
    """Other sizes that the kernel of such a suffix is for."""
    if suffix == "_tall":
        return {"rows": 80, "slots": 84}
    depth = re.match(r"_([dmw])(\d+)", suffix)
    if depth is None:
        return {}
    width, rows = int(depth[2]), 5 if depth[1] == "d" else 12
    gate = {"gate_row": 4 * width + 8, "gate_unit": width + 2, "gate_width": width}
    heads = {name: width for name in ("dk", "dv", "head_dim", "rot") if name in sizes}
    return {"rows": rows} | heads | (gate if "gate_row" in sizes else {})


def posed(library, name, base, sizes):
    """A kernel's Definition, and inputs for it."""
    of = define(dict(library.kernels.named)[name], sizes, base)
    return of, Inputs(of, Workload({axis: sizes[axis] for axis in of.var_axes}, {}, "w"))


def wrong(library, name, base, sizes):
    """Why a kernel is not right; an empty list where it is."""
    of, inputs = posed(library, name, base, sizes)
    given = inputs.trial(0, 0)
    trial = Trial(given, Reference(of).run(given, inputs.values, 0))
    metrics = judged(library, name, of, trial, sizes)
    return [(name, n, m) for n, m in metrics.items() if not m.fits]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_kernel_passes_against_its_definition(library, part):
    every = sorted(every_case(library.kernels), key=itemgetter(0))
    assert len(every) > 600
    failed = [each for case in every[part::PARTS] for each in wrong(library, *case)]
    assert failed == []


def test_a_kernel_against_another_definition_fails(library):
    (case,) = [c for c in every_case(library.kernels) if c[0] == "add"]
    assert wrong(library, *case) == []
    assert wrong(library, "mul", "add", case[2])


def kinds(library):
    """A Definition, and inputs for it, of each family and set of functions it is written with."""
    found = {}
    for name, base, sizes in sorted(every_case(library.kernels), key=itemgetter(1)):
        of, inputs = posed(library, name, base, sizes)
        written = re.findall(r"^def (\w+)", of.reference, re.MULTILINE)
        found.setdefault((id(family_of(base)), *written), (of, inputs))
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_a_reference_computes_on_the_gpu_too(library, part):
    every = kinds(library)
    assert len(every) > 100
    for of, inputs in every[part::PARTS]:
        given = inputs.trial(0, 0)
        there = {n: v.cuda() if isinstance(v, torch.Tensor) else v for n, v in given.items()}
        found = Reference(of).run(there, inputs.values, 0)
        for name, value in Reference(of).run(given, inputs.values, 0).items():
            assert found[name].is_cuda, (of.name, name)
            near = 2e-2 * float(value.double().nan_to_num().abs().max())
            far = (found[name].cpu().double() - value.double()).nan_to_num().abs().max()
            assert float(far) <= near, (of.name, name)
