"""What folders may hold, and that a file which hides an inherited one is declared."""

import pytest

from bedstone.target.hardware import read_sets
from bedstone.target.tree import check_tree
from kernel_trees import MODEL, hardware, write_tree

BASE = {
    **hardware("base"),
    "base/common/norm.c": "",
    "base/common/simd.h": "",
    "base/llama/MODEL.toml": MODEL,
}
LEAF = hardware("leaf", inherits="base")


def faults(tmp_path, *files):
    return list(map(str, check_tree(write_tree(tmp_path, BASE, *files))))


def test_the_tree_that_is_shipped_has_no_fault():
    assert check_tree() == []
    assert len(read_sets()) > 4


def test_a_clean_tree_has_no_fault(tmp_path):
    assert faults(tmp_path, LEAF, {"leaf/common/other.c": ""}) == []


@pytest.mark.parametrize("name", ["norm.c", "norm.cu", "norm.py", "simd.h"])
def test_a_file_that_hides_an_inherited_one_must_be_declared(tmp_path, name):
    assert faults(tmp_path, LEAF, {f"leaf/common/{name}": ""}) == [
        f"kernels/leaf/common/{name}: hides an inherited file: declare it in `KERNEL.toml` under "
        "[shadow], with a reason"
    ]


def test_a_declared_file_may_hide_another(tmp_path):
    record = '[shadow]\n"norm.cu" = "faster"\n'
    files = {"leaf/common/norm.cu": "", "leaf/common/KERNEL.toml": record}
    assert faults(tmp_path, LEAF, files) == []


def test_a_declaration_that_hides_nothing_is_a_fault(tmp_path):
    record = '[build]\n[shadow]\n"new.c" = "faster"\n'
    files = {"leaf/common/new.c": "", "leaf/common/KERNEL.toml": record}
    assert faults(tmp_path, LEAF, files) == [
        'kernels/leaf/common/KERNEL.toml:3: `shadow."new.c"`: hides no inherited file: remove it'
    ]


def test_a_declaration_without_its_file_is_a_fault(tmp_path):
    files = {"leaf/common/KERNEL.toml": '[shadow]\n"norm.c" = "faster"\n'}
    assert faults(tmp_path, LEAF, files) == [
        'kernels/leaf/common/KERNEL.toml:2: `shadow."norm.c"`: expected a file of this folder, '
        "found none"
    ]


def test_a_models_folder_hides_what_its_set_shares(tmp_path):
    files = {"base/llama/q8_0/norm.c": "", "leaf/llama/q8_0/simd.h": ""}
    found = faults(tmp_path, LEAF, files)
    assert [fault.partition(":")[0] for fault in found] == [
        "kernels/base/llama/q8_0/norm.c",
        "kernels/leaf/llama/q8_0/simd.h",
    ]


def test_a_shared_file_may_hide_one_of_an_inherited_model(tmp_path):
    files = {"base/llama/q8_0/fast.c": "", "leaf/common/fast.c": ""}
    assert [f.partition(":")[0] for f in faults(tmp_path, LEAF, files)] == [
        "kernels/leaf/common/fast.c"
    ]


def test_a_models_record_that_hides_an_inherited_one_must_be_declared(tmp_path):
    files = {"leaf/llama/MODEL.toml": MODEL}
    assert "kernels/leaf/llama/MODEL.toml: hides" in faults(tmp_path, LEAF, files)[0]
    files["leaf/llama/KERNEL.toml"] = '[shadow]\n"MODEL.toml" = "other presets"\n'
    assert faults(tmp_path, LEAF, files) == []


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("base/llama/q9_0/a.c", "kernels/base/llama/q9_0: no quantization: did you mean `q8_0`?"),
        ("base/llama/notes/a.c", "kernels/base/llama/notes: no quantization: known are f32"),
        ("base/other/a.c", "kernels/base/other: no model: neither it nor an inherited set has"),
        ("base/common/a.txt", "kernels/base/common/a.txt: no kernel source, header or record"),
        ("base/common/norm.cu", "kernels/base/common: 2 sources stand for `norm`, expected one"),
        ("base/stray.c", "kernels/base/stray.c: expected only `HARDWARE.toml` here"),
    ],
)
def test_nothing_lies_about_unread(tmp_path, name, fault):
    (found,) = faults(tmp_path, {name: ""})
    assert found.startswith(fault)


def test_a_broken_record_is_one_of_the_faults(tmp_path):
    found = faults(tmp_path, LEAF, {"leaf/common/KERNEL.toml": "[shadows]\n"})
    assert found == [
        "kernels/leaf/common/KERNEL.toml:1: `shadows`: unknown key; did you mean `shadow`?"
    ]
