"""A build whose modules are all there already costs next to nothing."""

from time import process_time

import pytest

from bedstone.build.audit import compile_set
from bedstone.target.hardware import read_sets
from bedstone.target.sources import read_sources

MOST_SECONDS = 1.0
"""Of this process's own time: the wall's says as much of what else the machine does."""


@pytest.mark.slow
def test_a_warm_build_of_a_cpu_set_compiles_nothing_and_takes_under_a_second(modules, monkeypatch):
    sources = read_sources(read_sets()["cpu-generic"])
    cold = compile_set(sources, modules)
    compiled: list[object] = []
    monkeypatch.setattr("bedstone.target.toolchain._compile", lambda *made: compiled.append(made))
    started = process_time()
    warm = compile_set(sources, modules)
    assert process_time() - started < MOST_SECONDS
    assert warm.objects == cold.objects
    assert compiled == []
