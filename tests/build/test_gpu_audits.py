"""Each way a GPU's set can be broken is caught, most of them without compiling anything."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bedstone.build.kernels import audit_sources, compile_modules, modules_of
from bedstone.target.audit import Built, Finding, failures
from bedstone.target.blob import Blob
from bedstone.target.hardware import read_sets
from bedstone.target.records import KERNELS
from bedstone.target.sources import read_sources
from bedstone.target.tree import check_tree
from gpu_sets import GPU_SETS, as_if_built, kernels_of

LOST = "argmax"

each_gpu = pytest.mark.parametrize("name", GPU_SETS)


def without(blobs: dict[str, Blob], entry: str, instead: str | None = None) -> dict[str, Blob]:
    kept = {}
    for label, blob in blobs.items():
        names = {instead if name == entry else name: abi for name, abi in blob.entries.items()}
        names.pop(None, None)
        kept[label] = replace(blob, entries=names)
    return kept


def failed(name: str, built: Built, kernels: Path = KERNELS) -> list[Finding]:
    return failures(audit_sources(read_sources(read_sets(kernels)[name], kernels=kernels), built))


@each_gpu
def test_a_whole_set_passes(name: str) -> None:
    assert failed(name, Built(as_if_built(name), {})) == []


@each_gpu
@pytest.mark.parametrize("instead", [None, "argmaxx"])
def test_a_kernel_that_is_gone_or_renamed_is_caught(name: str, instead: str | None) -> None:
    found = failed(name, Built(without(as_if_built(name), LOST, instead), {}))
    assert {(finding.entry, finding.status) for finding in found} == {(LOST, "never_built")}
    assert len(found) == len({kernel.module for kernel in kernels_of(name) if kernel.entry == LOST})
    assert all(("did you mean `argmaxx`?" in each.note) is (instead is not None) for each in found)


@each_gpu
def test_a_fork_that_lacks_an_entry_is_caught(name: str) -> None:
    whole = as_if_built(name)
    found = failed(name, Built(without(whole, LOST), {LOST: whole[LOST]}))
    assert {(finding.entry, finding.status) for finding in found} == {(LOST, "dropped")}


@each_gpu
@pytest.mark.parametrize("pattern", [LOST, "nothing_of_the_kind", "*"])
def test_a_stale_exemption_is_caught(name: str, pattern: str, tmp_path: Path) -> None:
    tree = Path(shutil.copytree(KERNELS, tmp_path / "kernels"))
    nearest = read_sources(read_sets(tree)[name], kernels=tree).layers[0].path / "KERNEL.toml"
    text = nearest.read_text() if nearest.exists() else ""
    if "[expected_absent]\n" not in text:
        text += "[expected_absent]\n"
    line = f'"{pattern}" = "not needed"\n'
    nearest.write_text(text.replace("[expected_absent]\n", f"[expected_absent]\n{line}"))
    found = failed(name, Built(as_if_built(name), {}), tree)
    assert {(finding.entry, finding.status) for finding in found} == {(pattern, "stale_exemption")}


@pytest.mark.slow
def test_a_fork_of_a_source_is_compiled_and_held_to_what_it_hides(tmp_path: Path) -> None:
    tree = Path(shutil.copytree(KERNELS, tmp_path / "kernels"))
    source, record = (tree / "gb10" / "common" / name for name in ("argmax.cu", "KERNEL.toml"))
    source.parent.mkdir(exist_ok=True)
    text = (tree / "cuda-generic" / "common" / "argmax.cu").read_text()
    assert f"\n{LOST}(" in text
    source.write_text(text.replace(f"\n{LOST}(", "\nanother("))
    assert len(check_tree(tree)) == 1
    record.write_text('[shadow]\n"argmax.cu" = "faster"\n')
    assert check_tree(tree) == []
    module = {LOST: modules_of(kernels_of("gb10"))[LOST]}
    sources = read_sources(read_sets(tree)["gb10"], kernels=tree)
    built = compile_modules(sources, module, tmp_path / "cache").built
    assert LOST not in built.blobs[LOST].entries
    assert LOST in built.hidden[LOST].entries
    statuses = {finding.entry: finding.status for finding in failed("gb10", built, tree)}
    assert statuses[LOST] == "dropped"
