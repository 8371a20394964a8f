"""Hardware sets: their records, what they inherit, and who refuses whom."""

from pathlib import Path

import pytest

from bedstone.errors import CallerError
from bedstone.target.hardware import find_set, read_sets
from bedstone.target.records import RecordError
from kernel_trees import hardware, write_tree


def faults(kernels: Path) -> list[str]:
    with pytest.raises(RecordError) as refused:
        read_sets(kernels)
    return list(map(str, refused.value.faults))


def test_a_set_adds_to_what_it_inherits(tmp_path):
    kernels = write_tree(
        tmp_path,
        hardware("any", vendor="any"),
        hardware("old", inherits="any", more='features = ["avx"]\n'),
        hardware("new", inherits="old", arch="v4", more='features = ["avx512f"]\n'),
    )
    sets = read_sets(kernels)
    assert [each.name for each in sets["new"].chain] == ["new", "old", "any"]
    assert sets["new"].features == {"avx", "avx512f"}
    assert (sets["new"].arch, sets["new"].form) == ("v4", "shared_object")
    assert sets["any"].form is None


def test_a_set_bears_its_folders_name(tmp_path):
    kernels = write_tree(tmp_path, {"one/HARDWARE.toml": hardware("two")["two/HARDWARE.toml"]})
    assert faults(kernels) == [
        "kernels/one/HARDWARE.toml:2: `hardware.name`: expected the folder's name `one`, "
        "found `two`"
    ]


def test_the_arch_is_required(tmp_path):
    kernels = write_tree(tmp_path, {"a/HARDWARE.toml": '[hardware]\nname = "a"\nvendor = "cpu"\n'})
    assert faults(kernels) == [
        "kernels/a/HARDWARE.toml:1: `hardware`: expected a key `arch`, found none"
    ]


@pytest.mark.parametrize("arch", ["gfx1151", "sm_9", "sm_", "sm_90b"])
def test_an_nvidia_set_has_an_architecture_of_nvidias(tmp_path, arch):
    (fault,) = faults(write_tree(tmp_path, hardware("a", vendor="nvidia", arch=arch)))
    assert f"such as `sm_90a`, found `{arch}`" in fault


def test_only_a_cpu_has_cpu_features(tmp_path):
    more = 'features = ["avx"]\n'
    (fault,) = faults(write_tree(tmp_path, hardware("a", vendor="nvidia", arch="sm_90", more=more)))
    assert "`hardware.features`: expected none for vendor `nvidia`" in fault


def test_a_parent_has_to_be_there(tmp_path):
    (fault,) = faults(write_tree(tmp_path, hardware("a", inherits="b")))
    assert fault == ("kernels/a/HARDWARE.toml:5: `hardware.inherits`: no usable hardware set `b`")


def test_a_parent_is_of_the_same_vendor(tmp_path):
    kernels = write_tree(
        tmp_path, hardware("a", inherits="b"), hardware("b", vendor="nvidia", arch="sm_90")
    )
    (fault,) = faults(kernels)
    assert "`b` is of vendor `nvidia`, expected `cpu` or `any`" in fault


def test_no_set_inherits_from_itself(tmp_path):
    kernels = write_tree(
        tmp_path,
        hardware("a", inherits="b"),
        hardware("b", inherits="c"),
        hardware("c", inherits="a"),
    )
    found = faults(kernels)
    assert len(found) == 3
    assert "`a` inherits from itself: a -> b -> c -> a" in found[0]


def test_every_broken_record_is_listed(tmp_path):
    kernels = write_tree(tmp_path, {"a/HARDWARE.toml": "x = 1\n", "b/HARDWARE.toml": "y ="})
    assert [fault.partition(":")[0] for fault in faults(kernels)] == [
        "kernels/a/HARDWARE.toml",
        "kernels/a/HARDWARE.toml",
        "kernels/b/HARDWARE.toml",
    ]


def test_a_record_that_is_no_text_is_a_fault(tmp_path):
    kernels = write_tree(tmp_path, {"a/HARDWARE.toml": ""})
    (kernels / "a" / "HARDWARE.toml").write_bytes(b"\xff\xfe")
    assert "cannot be read" in faults(kernels)[0]


def test_an_unknown_set_is_answered_with_the_known_ones():
    sets = read_sets()
    with pytest.raises(CallerError, match="did you mean `cpu-x86-64-v4`"):
        find_set("cpu-x86_64-v4", sets)
    with pytest.raises(CallerError, match=r"expected one of .*`cpu-generic`.*`hopper`"):
        find_set("abacus", sets)
