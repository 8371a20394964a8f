"""A module that states CPU features which this machine lacks is never called."""

import pytest

from bedstone.errors import TargetError
from bedstone.runtime.generate import Generator
from bedstone.runtime.load import Parts, load
from runtime_toy import SOURCE, compile_module, expected, toy_manifest

NEEDS = '__attribute__((visibility("default"))) const char bs_needs[] = "%s";\n'


@pytest.fixture
def parts(tmp_path, cache):
    def stating(needs: str) -> Parts:
        source = tmp_path / "toy.c"
        source.write_text(SOURCE.read_text() + NEEDS % needs)
        sha256 = compile_module(source, tmp_path / "kernels", cache)
        return Parts(toy_manifest(sha256), tmp_path / "kernels")

    return stating


def test_a_machine_with_every_feature_runs_it(parts, cache, monkeypatch):
    monkeypatch.setattr(
        "bedstone.runtime.cpu.device.read_features", lambda: frozenset({"avx2", "abacus"})
    )
    with load(parts(" abacus avx2"), cache=cache, threads=1) as session:
        assert list(Generator(session).generate([1, 2], 3)) == expected([1, 2], 3)


def test_a_machine_that_lacks_one_refuses_before_anything_is_called(parts, cache, monkeypatch):
    monkeypatch.setattr("bedstone.runtime.cpu.device.read_features", lambda: frozenset({"avx2"}))
    with pytest.raises(TargetError, match=r"module `toy` was compiled for .*lacks: `abacus`;"):
        load(parts(" abacus avx2"), cache=cache, threads=1)


def test_the_features_are_this_machines_own(parts, cache):
    with pytest.raises(TargetError, match="`abacus`"):
        load(parts(" abacus"), cache=cache, threads=1)
