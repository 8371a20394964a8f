"""`bedstone define build`: kernels compiled before they are run."""

import json

import pytest

from command_line import bedstone

NAMES = ("--config", "smollm2-135m", "--kernel", "silu", "--kernel", "softcap")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BEDSTONE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "solutions"


@pytest.mark.parametrize(("target", "kept"), [("cpu-generic", "*.so"), ("hopper", "*.cubin")])
def test_modules_are_compiled_once(tmp_path, cache, target, kept):
    folder = tmp_path / "set"
    bedstone("define", "export", folder, *NAMES, "--target", target)
    first = bedstone("define", "build", folder)
    assert (first.code, first.out) == (0, "1 module: 1 compiled, 0 failed\n")
    assert len(list(cache.glob(kept))) == 1
    again = bedstone("define", "build", folder, "--json")
    assert json.loads(again.out) == {"modules": 1, "compiled": 0, "failed": {}}


@pytest.mark.usefixtures("cache")
def test_what_does_not_compile_is_named(tmp_path):
    folder = tmp_path / "set"
    bedstone("define", "export", folder, *NAMES, "--target", "cpu-generic")
    for path in (folder / "solutions").rglob("*.json"):
        path.write_text(path.read_text().replace("#include", "#encompass"))
    ended = bedstone("define", "build", folder)
    assert ended.code == 1
    assert ended.out == "1 module: 0 compiled, 1 failed\n"
    assert ".cpu-generic: `elementwise.c` does not compile" in ended.err


@pytest.mark.usefixtures("cache")
def test_bench_leaves_kernels_for_another_device_out(tmp_path):
    folder = tmp_path / "set"
    bedstone("define", "export", folder, *NAMES, "--target", "hopper")
    ended = bedstone("define", "bench", folder, "--json")
    assert (ended.code, json.loads(ended.out)["traces"]) == (0, [])
    assert "left out: 2 kernels for another device than `cpu`" in ended.err
