"""A package's directory: what is loaded of it, and what makes it none."""

import json

import pytest

from bedstone.build.request import Package
from bedstone.errors import CallerError, ManifestError
from bedstone.runtime.generate import Generator
from bedstone.runtime.load import load, read_parts
from bedstone.spec.codec import serialize
from bedstone.spec.package import KERNELS, LOCK, MANIFEST, Lock, emit_lock
from runtime_toy import PAGE, PAGES


@pytest.fixture
def package(tmp_path, toy):
    folder = tmp_path / "package"
    (folder / KERNELS).mkdir(parents=True)
    for path in toy.kernels.iterdir():
        (folder / KERNELS / path.name).write_bytes(path.read_bytes())
    (folder / MANIFEST).write_text(serialize(toy.manifest))
    return folder


def test_a_package_directory_loads(package, cache):
    with load(package, cache=cache, threads=1) as session:
        assert Generator(session).prefill([7, 8]) == 15
        assert session.capacity.tokens == PAGE * PAGES


def test_a_package_is_named_by_its_path_in_any_form(package, cache):
    for named in (str(package), Package(package, None)):
        with load(named, cache=cache, threads=1) as session:
            assert Generator(session).prefill([7, 8]) == 15


@pytest.mark.parametrize("field", ["context", "sequences", "page"])
def test_a_lock_with_no_room_is_no_lock(package, field):
    made = {
        "bedstone": "0.1.0", "checkpoint": "m", "identity": "", "target": "cpu",
        "numerics": "precise", "context": 40, "sequences": 1, "page": PAGE,
        "compiler": "gcc", "sources": "", "modules": {},
    }  # fmt: skip
    (package / LOCK).write_text(json.dumps(made | {field: 0}))
    with pytest.raises(ManifestError, match=rf"no package lock: .* >= 1 .*`\$\.{field}`"):
        read_parts(package)


def test_a_directory_without_a_manifest_is_no_package(tmp_path):
    with pytest.raises(CallerError, match=f"`{tmp_path}` is no package: `manifest.json` cannot be"):
        load(tmp_path)


def test_the_lock_says_which_checkpoint(package):
    lock = Lock(
        bedstone="0.1.0",
        checkpoint="pkg:m/f", identity="ab", target="cpu", numerics="precise", context=40,
        sequences=1, page=PAGE, compiler="gcc", sources="cd", modules={},
    )  # fmt: skip
    (package / LOCK).write_bytes(emit_lock(lock))
    parts = read_parts(package)
    assert (parts.checkpoint, parts.identity) == ("pkg:m/f", "ab")
