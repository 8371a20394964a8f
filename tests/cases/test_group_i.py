"""Reported cases about installing and starting; each named after its id."""

import gzip
import hashlib
import json
import os
import subprocess
import sys

import pytest

from bedstone.build import request
from bedstone.build.request import Options, Request
from bedstone.checkpoint.reference import open_checkpoint
from checkpoint_files import LLAMA, write_directory
from command_line import bedstone
from conformance_cases import accepted_text


@pytest.fixture
def manifest(tmp_path):
    path = tmp_path / "m.json"
    path.write_text(accepted_text("01_minimal"))
    return path


def started(*arguments, **environment):
    """`python -m bedstone` with nothing of this process's environment but where modules are."""
    return subprocess.run(
        [sys.executable, "-m", "bedstone", *map(str, arguments)],
        env={"PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("arguments", [["--help"], ["verify", "m.json"]])
def test_i01_what_needs_no_gpu_looks_for_none(manifest, arguments):
    arguments = [manifest if word == "m.json" else word for word in arguments]
    # a driver that ends whatever loads it
    manifest.with_name("libcuda.so.1").write_text("no library")
    done = started(*arguments, LD_LIBRARY_PATH=str(manifest.parent))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments", [["target", "list"], ["verify", "m.json"], ["show", "m.json"]]
)
def test_i02_what_compiles_nothing_needs_no_compiler(manifest, arguments):
    arguments = [manifest if word == "m.json" else word for word in arguments]
    done = started(*arguments, PATH="", CUDA_HOME=":/usr/local/cuda")
    assert (done.returncode, done.stderr) == (0, "")


def test_i06_a_missing_shard_is_one_line_before_anything_is_served(tmp_path):
    folder = write_directory(tmp_path / "c", LLAMA)
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"model.norm.weight": "model-2.safetensors"}})
    )
    ended = bedstone("serve", folder, "--port", "0")
    assert (ended.code, ended.out) == (2, "")
    (line,) = ended.err.splitlines()
    assert f"{folder}/model.safetensors.index.json" in line
    assert "names 1 missing file (model-2.safetensors)" in line


def test_i07_what_another_release_compiled_is_not_taken(tmp_path, monkeypatch):
    checkpoint = open_checkpoint(str(write_directory(tmp_path / "c", LLAMA)))
    asked = Request(checkpoint, Options(), tmp_path / "cache")
    before = asked.cached("cc 1")
    monkeypatch.setattr(request, "sources_digest", lambda: "0" * 64)
    assert asked.cached("cc 1") != before


def test_i08_a_pin_taken_from_the_wrong_file(manifest):
    data = b"kernel"
    packed = manifest.with_name("k.so.gz")
    packed.write_bytes(gzip.compress(data))
    document = json.loads(manifest.read_text())
    (name,) = document["modules"]
    pinned = hashlib.sha256(data).hexdigest()
    document["modules"] = {name: {"source": packed.name, "sha256": pinned}}
    manifest.write_text(json.dumps(document))
    ended = bedstone("verify", manifest)
    actual = hashlib.sha256(packed.read_bytes()).hexdigest()
    assert ended.code == 1
    assert all(words in ended.out for words in (str(packed), pinned, actual))
