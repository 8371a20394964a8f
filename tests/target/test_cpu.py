"""The kernel set of a CPU: never one that needs an instruction it lacks."""

from pathlib import Path

import pytest

from bedstone.errors import CallerError, TargetError
from bedstone.target.cpu import choose, refuses, runnable
from bedstone.target.features import lacks, parse_cpuinfo, read_features
from bedstone.target.hardware import read_sets
from kernel_trees import hardware, write_tree

SETS = read_sets()
V3, V4 = (SETS[f"cpu-x86-64-v{level}"].features for level in (3, 4))


def best(features: frozenset[str]) -> str:
    return choose("auto", SETS, features).name


def test_a_cpu_with_every_feature_gets_the_fastest_set() -> None:
    assert best(V4 | {"avx512_bf16", "amx_int8"}) == "cpu-x86-64-v4"
    assert best(V4 | {"avx512_bf16", "clzero"}) == "cpu-x86-64-zen4"
    assert best(V3 | {"avx512f"}) == "cpu-x86-64-v3"
    assert best(frozenset()) == "cpu-generic"


@pytest.mark.parametrize("feature", sorted(V4))
def test_a_cpu_that_lacks_one_feature_does_not_get_a_set_that_needs_it(feature: str) -> None:
    expected = "cpu-generic" if feature in V3 else "cpu-x86-64-v3"
    assert best(V4 - {feature}) == expected
    assert expected in runnable(SETS, V4 - {feature})


def test_a_named_set_is_refused_with_what_is_missing() -> None:
    assert choose("cpu-x86-64-v3", SETS, V4).name == "cpu-x86-64-v3"
    with pytest.raises(
        TargetError, match=r"lacks: `avx512bw`.*runs `cpu-generic`, `cpu-x86-64-v3`"
    ):
        choose("cpu-x86-64-v4", SETS, V4 - {"avx512bw"})
    assert choose("hopper", SETS, frozenset()).name == "hopper"
    with pytest.raises(TargetError, match="holds models and no kernels"):
        choose("any", SETS, V4)
    with pytest.raises(CallerError, match="no hardware set"):
        choose("abacus", SETS, V4)


def test_a_tree_without_a_set_for_this_cpu_is_refused(tmp_path: Path) -> None:
    kernels = write_tree(tmp_path, hardware("a", more='features = ["avx"]\n'))
    with pytest.raises(TargetError, match="no hardware set runs on this machine's CPU"):
        choose("auto", read_sets(kernels), frozenset())


def test_a_set_says_why_a_cpu_does_not_run_it() -> None:
    assert refuses(SETS["cpu-x86-64-v3"], V3) is None
    assert refuses(SETS["cpu-x86-64-v3"], V3 - {"fma"}) == (
        "needs CPU features this machine lacks: `fma`"
    )
    assert refuses(SETS["hopper"], V3) == "is for a GPU (`sm_90a`), not for a CPU"


def test_a_module_compiled_for_more_than_the_machine_has_is_refused() -> None:
    assert lacks("norm", V3, V4) is None
    refusal = lacks("norm", V4, V4 - {"avx512f"})
    assert refusal is not None
    assert "module `norm` was compiled for CPU features this machine lacks: `avx512f`" in refusal


def test_only_features_of_every_processor_count() -> None:
    text = "processor\t: 0\nflags\t\t: fpu avx2 fma\n\nprocessor\t: 1\nflags\t\t: fpu avx2\n"
    assert parse_cpuinfo(text) == {"fpu", "avx2"}
    assert parse_cpuinfo("Features\t: fp asimd\n") == frozenset()


def test_a_machine_without_cpuinfo_or_of_another_kind_has_none(tmp_path: Path) -> None:
    assert read_features(tmp_path / "cpuinfo") == frozenset()
    (tmp_path / "cpuinfo").write_text("flags\t: avx2\n")
    assert read_features(tmp_path / "cpuinfo", "x86_64") == {"avx2"}
    assert read_features(tmp_path / "cpuinfo", "aarch64") == frozenset()
