"""Whole hardware sets compiled and audited, and each way in which one can be broken."""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from bedstone.build.audit import TargetAudit, audit_set
from bedstone.build.kernels import (
    audit_sources,
    catalogs,
    compile_modules,
    modules_of,
    require_kernels,
)
from bedstone.errors import KernelError
from bedstone.library.catalog import cpu_kernels
from bedstone.library.kernel import Extent, Kernel, KernelSet
from bedstone.spec.manifest import Impl, KernelLaunch, Manifest, Op
from bedstone.target.audit import Built, Finding, failures
from bedstone.target.blob import Blob
from bedstone.target.hardware import read_sets
from bedstone.target.records import KERNELS
from bedstone.target.sources import read_sources
from bedstone.target.tree import check_tree
from gpu_sets import GPU_SETS, SETS
from kernel_trees import write_tree
from kernels.harness import AVAILABLE

ROWS = [kernel for kernel in cpu_kernels().kernels.values() if kernel.source == "rows.c"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The shipped tree, to be broken."""
    return Path(shutil.copytree(KERNELS, tmp_path / "kernels"))


def failed(kernels: Path, name: str, modules: Path, model: str = "llama") -> list[Finding]:
    """What fails of a model's first target: the one with a quantization's folder, if it has any."""
    audits = audit_set(read_sets(kernels)[name], modules, kernels)
    return next(found for found in audits if found.model == model).failed


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, each in SETS.items() if each.vendor == "cpu"])
def test_every_cpu_set_builds_and_passes_for_every_model_and_form(
    name: str, tree: Path, modules: Path
) -> None:
    if name not in AVAILABLE:  # no test runs its modules, so nothing takes its time to optimize
        edit(tree / name / "HARDWARE.toml", "flags = [", 'flags = ["-O0", ')
    audits: list[TargetAudit] = list(audit_set(read_sets(tree)[name], modules, tree))
    assert {found.model for found in audits} >= {"generic", "llama", "qwen3"}
    for found in audits:
        assert found.failed == []
        for form in ("decode", "chunk", "batch"):
            status = Counter(finding.status for finding in found.of_form(form))
            assert status["found"] > 100
        blobs = found.compiled.built.blobs.values()
        assert frozenset[str]().union(*(b.needs for b in blobs)) == SETS[name].features


@pytest.mark.parametrize("name", ["cpu-generic", *GPU_SETS])
def test_a_record_says_of_every_entry_the_library_lacks_why(name: str) -> None:
    kernels = [k for held in catalogs(SETS[name]) for k in held.every]
    blobs = {
        label: Blob(
            label, "shared_object", "", "", {k.entry: None for k in kernels if k.module == label}
        )
        for label in modules_of(kernels)
    }
    findings = audit_sources(read_sources(SETS[name]), Built(blobs, {}))
    assert failures(findings) == []


@pytest.mark.slow
def test_a_kernel_that_is_gone_is_caught(tree: Path, modules: Path) -> None:
    source = tree / "cpu-generic" / "common" / "rows.c"
    text = source.read_text()
    start = text.index("BS_KERNEL(take_row")
    end = text.find("BS_KERNEL(", start + 1)
    source.write_text(text[:start] + (text[end:] if end > 0 else ""))
    (finding,) = failed(tree, "cpu-generic", modules)
    assert (finding.entry, finding.status) == ("take_row", "never_built")
    assert "module `rows` has no such entry" in finding.note
    assert "`Row` has no other launch, so models that use it do not compile" in finding.note


@pytest.mark.slow
def test_an_entry_that_is_renamed_is_caught_with_the_name_it_has(tree: Path, modules: Path) -> None:
    source = tree / "cpu-generic" / "common" / "rows.c"
    edit(source, "BS_KERNEL(take_row", "BS_KERNEL(take_rows")
    (finding,) = failed(tree, "cpu-generic", modules)
    assert (finding.entry, finding.status) == ("take_row", "never_built")
    assert "did you mean `take_rows`?" in finding.note


@pytest.mark.slow
def test_an_entry_of_other_parameters_is_caught(tree: Path, modules: Path) -> None:
    edit(
        tree / "cpu-generic" / "common" / "rows.c",
        "in buffer<f32>, i32, out",
        "in buffer<f32>, i64, out",
    )
    (finding,) = failed(tree, "cpu-generic", modules)
    assert (finding.entry, finding.status) == ("take_row", "other_abi")


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["cpu-x86-64-v3/common", "cpu-x86-64-v3/llama/q8_0"])
def test_a_fork_that_lacks_an_entry_is_caught(tree: Path, modules: Path, folder: str) -> None:
    fork = tree / folder / "rows.c"
    fork.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(tree / "cpu-generic" / "common" / "rows.c", fork)
    edit(fork, "BS_KERNEL(take_row", "BS_KERNEL(another")
    assert len(check_tree(tree)) >= 1
    record = fork.parent / "KERNEL.toml"
    text = record.read_text() if record.exists() else "[shadow]\n"
    record.write_text(f'{text}"rows.c" = "faster"\n[expected_absent]\ntake_row = "unused"\n')
    assert check_tree(tree) == []
    findings = {f.entry: f for f in failed(tree, "cpu-x86-64-v3", modules)}
    assert findings["take_row"].status == "dropped"
    assert "the file that hides the inherited one of module `rows` lacks it" in (
        findings["take_row"].note
    )


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["norm", "attention", "nothing_of_the_kind"])
def test_a_stale_exemption_is_caught(tree: Path, modules: Path, pattern: str) -> None:
    record = tree / "cpu-generic" / "common" / "KERNEL.toml"
    record.write_text(f'{record.read_text()}{pattern} = "not needed"\n')
    (finding,) = failed(tree, "cpu-generic", modules)
    assert (finding.entry, finding.status) == (pattern, "stale_exemption")


def test_a_module_that_needs_more_than_its_set_declares_is_refused(
    tree: Path, modules: Path
) -> None:
    record = tree / "cpu-x86-64-v3" / "HARDWARE.toml"
    edit(record, '"-mavx2"', '"-mavx2", "-mavxvnni"')
    sources = read_sources(read_sets(tree)["cpu-x86-64-v3"], kernels=tree)
    with pytest.raises(KernelError, match="compiled for avx_vnni, which hardware set") as refused:
        compile_modules(sources, modules_of(ROWS), modules)
    assert "add to its features, or take the flag away" in str(refused.value)


def test_an_error_shows_the_kernels_own_line(tree: Path, modules: Path) -> None:
    edit(
        tree / "cpu-generic" / "common" / "rows.c", "BS_KERNEL(take_row", "oops BS_KERNEL(take_row"
    )
    sources = read_sources(read_sets(tree)["cpu-generic"], kernels=tree)
    with pytest.raises(KernelError, match=r"`rows\.c` does not compile.*\n.*rows\.c:\d+"):
        compile_modules(sources, modules_of(ROWS), modules)


def test_a_set_of_gpu_kernels_is_compiled_without_a_gpu(tmp_path: Path) -> None:
    kernels = write_tree(
        tmp_path,
        {
            "hopper/HARDWARE.toml": (KERNELS / "hopper" / "HARDWARE.toml")
            .read_text()
            .replace('inherits = "cuda-generic"\n', ""),
            "hopper/common/copy.cu": 'extern "C" __global__ void copy(float *y, float x)'
            " { *y = x * BY; }\n",
        },
    )
    one = Extent()
    kernel = Kernel("copy", "copy-2", "copy.cu", {"BY": "2"}, (), (one, one, one))
    sources = read_sources(read_sets(kernels)["hopper"], kernels=kernels)
    compiled = compile_modules(sources, {"copy-2": kernel}, tmp_path / "cache")
    blob = compiled.built.blobs["copy-2"]
    assert (blob.form, blob.arch, list(blob.entries)) == ("cubin", "sm_90a", ["copy"])


def test_a_manifest_that_calls_what_is_not_there_is_refused(modules: Path) -> None:
    compiled = compile_modules(read_sources(SETS["cpu-generic"]), modules_of(ROWS), modules)
    launches = tuple(
        KernelLaunch("rows", name, (1, 1, 1), (1, 1, 1)) for name in ("take_row", "take_rows")
    )
    manifest = Manifest("m", {}, {}, {"rows": Op((), Impl(launches))}, {})
    with pytest.raises(KernelError, match=r"`take_rows`: never built.*did you mean `take_row`"):
        require_kernels(manifest, compiled.built, cpu_kernels())
    good = Manifest("m", {}, {}, {"rows": Op((), Impl(launches[:1]))}, {})
    (finding,) = require_kernels(good, compiled.built, KernelSet("none", {}))
    assert (finding.entry, finding.status) == ("take_row", "found")
