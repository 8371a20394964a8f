"""The kernel set of a CPU: never one that needs an instruction it lacks."""

from pathlib import Path

import pytest

from bedstone.target.cpu import HARDWARE_SETS, choose, parse_cpuinfo, read_features

V3, V4 = (dict(HARDWARE_SETS)[f"cpu-x86-64-v{level}"] for level in (3, 4))


def test_a_cpu_with_every_feature_gets_the_fastest_set() -> None:
    assert choose(V4 | {"avx512_bf16", "amx_int8"}) == "cpu-x86-64-v4"
    assert choose(V3 | {"avx512f"}) == "cpu-x86-64-v3"
    assert choose(frozenset()) == "cpu-generic"


@pytest.mark.parametrize("feature", sorted(V4))
def test_a_cpu_that_lacks_one_feature_does_not_get_a_set_that_needs_it(feature: str) -> None:
    expected = "cpu-generic" if feature in V3 else "cpu-x86-64-v3"
    assert choose(V4 - {feature}) == expected


def test_only_features_of_every_processor_count() -> None:
    text = "processor\t: 0\nflags\t\t: fpu avx2 fma\n\nprocessor\t: 1\nflags\t\t: fpu avx2\n"
    assert parse_cpuinfo(text) == {"fpu", "avx2"}
    assert parse_cpuinfo("Features\t: fp asimd\n") == frozenset()


def test_a_machine_without_cpuinfo_or_of_another_kind_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_features(tmp_path / "cpuinfo") == frozenset()
    (tmp_path / "cpuinfo").write_text("flags\t: avx2\n")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert read_features(tmp_path / "cpuinfo") == {"avx2"}
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert read_features(tmp_path / "cpuinfo") == frozenset()
