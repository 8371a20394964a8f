"""CUDA sources compiled for each set, as a sample, and held to what the library states of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from bedstone.build.kernels import audit_sources, compile_modules
from bedstone.library.cuda.catalog import cuda_kernels
from bedstone.library.kernel import Kernel
from bedstone.target.audit import Built, failures
from bedstone.target.sources import read_sources
from gpu_sets import FAMILIES, GPU_SETS, SETS, SOURCES, WHOLE, as_if_built, kernels_of, sample


@pytest.mark.slow
@pytest.mark.parametrize("name", GPU_SETS)
def test_a_sample_of_each_set_builds_and_the_whole_passes_its_audit(name: str, cache: Path) -> None:
    sources = read_sources(SETS[name])
    modules = sample(sources)
    compiled = compile_modules(sources, modules, cache)
    built = compiled.built
    assert built.blobs.keys() == modules.keys()
    for label, blob in built.blobs.items():
        assert (blob.form, blob.arch) == ("cubin", SETS[name].arch), label
        stated = {kernel.entry for kernel in kernels_of(name) if kernel.module == label}
        assert blob.entries.keys() >= stated, label
    whole = Built(as_if_built(name) | dict(built.blobs), built.hidden)
    assert failures(audit_sources(sources, whole)) == []


@pytest.mark.slow
def test_a_module_that_both_types_of_tables_share_is_the_same_code_for_either(cache: Path) -> None:
    sources = read_sources(SETS[WHOLE])
    plain, rounded = (cuda_kernels(tables).kernels for tables in ("f32", "bf16"))
    shared = {k.module for name, k in plain.items() if rounded[name] == k}
    chosen = {k.source: (n, k) for n, k in sample(sources).items() if n in shared}
    assert {"gemm.cu", "gemm_tall.cu", "experts.cu", "hlinear.cu", "route.cu"} <= chosen.keys()
    modules = dict(chosen.values())
    others = {n: replace(k, defines={**k.defines, "BS_CACHE": "bf16"}) for n, k in modules.items()}
    made = compile_modules(sources, modules, cache).objects
    assert compile_modules(sources, others, cache).objects == made


def test_every_source_there_is_is_compiled_for_one_set() -> None:
    sources = read_sources(SETS[WHOLE])
    units = [
        unit
        for kernel in sample(sources).values()
        for unit in (
            sources.unit(kernel.source, kernel.defines),
            sources.hidden_unit(kernel.source, kernel.defines),
        )
        if unit is not None
    ]
    compiled = {unit.sources[0] for unit in units}
    assert compiled == {path for layer in sources.layers for path in layer.path.glob("*.cu")}
    inherited = {path for name in GPU_SETS for path in _sources_of(name)}
    assert compiled >= inherited


def _sources_of(name: str) -> set[Path]:
    return {p for layer in read_sources(SETS[name]).layers for p in layer.path.glob("*.cu")}


@pytest.mark.parametrize("name", GPU_SETS)
def test_a_sample_is_small_and_the_same_each_time(name: str) -> None:
    sources = read_sources(SETS[name])
    chosen = sample(sources)
    assert list(chosen) == list(sample(sources))
    held = [kernel.source for kernel in chosen.values()]
    assert len(set(zip(held, map(_family, chosen.values()), strict=True))) == len(held)
    if name == WHOLE:
        assert max(map(held.count, held)) == FAMILIES
    else:
        assert len(held) == len(set(held)) == SOURCES


def _family(kernel: Kernel) -> str:
    return kernel.defines.get("BS_ONLY", "")
